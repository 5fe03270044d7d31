create or replace function sb_internal._create_message_type(
  caller name,
  name text,
  validation text,
  validator regprocedure,
  schema jsonb,
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  checked record;
begin
  perform sb_internal._require_admin(_create_message_type.caller, 'create message types');
  perform sb_internal._require_name(_create_message_type.name, 'message type', 128);
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('message type', _create_message_type.name,
    (select l.id from sb_internal._lookup('message type', _create_message_type.name, true) as l) is not null,
    _create_message_type.if_not_exists)
  then
    return;
  end if;
  checked := sb_internal._validation(_create_message_type.caller, _create_message_type.validation,
    _create_message_type.validator, _create_message_type.schema);
  -- Under repeatable read the name may be taken invisibly: on conflict turns that into 40001.
  insert into sb_internal.message_type (message_type_id, name, owner, validation, validator, schema)
  values (nextval('sb_internal.message_type_id'), _create_message_type.name, _create_message_type.caller,
    checked.validation_kind, checked.validator_name, _create_message_type.schema)
      on conflict on constraint message_type_name_key do nothing;
end
$$;
comment on function sb_internal._create_message_type(name, text, text, regprocedure, jsonb, boolean) is
  'CREATE MESSAGE TYPE behind sb.create_message_type.';
revoke all on function sb_internal._create_message_type(name, text, text, regprocedure, jsonb, boolean) from public;
