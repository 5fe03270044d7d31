create or replace function sb_internal._alter_message_type(
  caller name,
  name text,
  validation text,
  validator regprocedure,
  schema jsonb
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  old sb_internal.message_type;
  checked record;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('message type', _alter_message_type.name);
  perform sb_internal._require_owner(_alter_message_type.caller, object.owner,
    'alter message type ' || _alter_message_type.name);
  perform sb_internal._require_user_object(object.id, 'message type ' || _alter_message_type.name);
  if num_nonnulls(_alter_message_type.validation, _alter_message_type.validator, _alter_message_type.schema) = 0 then
    perform sb_internal._raise('22023', array['nothing to change for message type ' || _alter_message_type.name]);
  end if;
  select t.*
    into old
    from sb_internal.message_type as t
   where t.message_type_id = object.id;
  if upper(coalesce(_alter_message_type.validation, old.validation)) = old.validation
    and _alter_message_type.validator is null and _alter_message_type.schema is null
  then
    return;
  end if;
  checked := sb_internal._validation(_alter_message_type.caller,
    coalesce(_alter_message_type.validation, old.validation), _alter_message_type.validator,
    _alter_message_type.schema);
  update sb_internal.message_type as t
     set validation = checked.validation_kind,
         validator = checked.validator_name,
         schema = _alter_message_type.schema
   where t.message_type_id = object.id;
  update sb_internal.contract_message as m
     set validation = checked.validation_kind
   where m.message_type_id = object.id;
end
$$;
comment on function sb_internal._alter_message_type(name, text, text, regprocedure, jsonb) is
  'ALTER MESSAGE TYPE behind sb.alter_message_type. No key column changes, so no sender waits.';
revoke all on function sb_internal._alter_message_type(name, text, text, regprocedure, jsonb) from public;
