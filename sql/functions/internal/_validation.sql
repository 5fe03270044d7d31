create or replace function sb_internal._validation(
  caller name,
  validation text,
  validator regprocedure,
  schema jsonb,
  out validation_kind text,
  out validator_name text
)
  returns record
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  body_type regtype;
begin
  validation_kind := upper(_validation.validation);
  if validation_kind is null or validation_kind not in
    ('NONE', 'EMPTY', 'WELL_FORMED_XML', 'VALID_XML', 'WELL_FORMED_JSON', 'VALID_JSON')
  then
    perform sb_internal._raise('22023', array['validation ' || coalesce(_validation.validation, '(null)')
      || ' is none of NONE, EMPTY, WELL_FORMED_XML, VALID_XML, WELL_FORMED_JSON, VALID_JSON']);
  end if;
  body_type := case validation_kind
    when 'VALID_XML' then 'xml'::regtype
    when 'VALID_JSON' then 'jsonb'::regtype
  end;
  if body_type is null and (_validation.validator is not null or _validation.schema is not null) then
    perform sb_internal._raise('22023', array['validation ' || validation_kind || ' takes no validator and no schema']);
  elsif validation_kind = 'VALID_XML' and (_validation.validator is null or _validation.schema is not null) then
    perform sb_internal._raise('22023', array['validation VALID_XML needs a validator and takes no schema']);
  elsif validation_kind = 'VALID_JSON' and num_nonnulls(_validation.validator, _validation.schema) <> 1 then
    perform sb_internal._raise('22023', array['validation VALID_JSON needs either a validator or a schema']);
  end if;
  if _validation.schema is not null then
    perform sb_internal._json_schema_check(_validation.schema);
  end if;
  if _validation.validator is null then
    return;
  end if;

  perform sb_internal._require_admin(_validation.caller, 'set a validator');
  select format('%I.%I', n.nspname, p.proname)
    into validator_name
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
   where p.oid = _validation.validator
     and p.prokind = 'f'
     and not p.proretset
     and p.prorettype = 'boolean'::regtype
     and p.pronargs = 1
     and p.proargtypes[0] = body_type
     and not starts_with(n.nspname, 'pg_temp_');
  if not found then
    perform sb_internal._raise('22023', array[format(
      'validator %s is not a permanent function (%s) returns boolean', _validation.validator, body_type)]);
  end if;
end
$$;
comment on function sb_internal._validation(name, text, regprocedure, jsonb) is
  'Checks that validation, validator and schema fit together; returns them as they are stored, the validator as quoted schema.name. Only an admin may set a validator. Errors: 22023, 42501.';
revoke all on function sb_internal._validation(name, text, regprocedure, jsonb) from public;
