create or replace function sb.create_message_type(
  name text,
  validation text default 'NONE',
  validator regprocedure default null,
  schema jsonb default null,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_message_type(
    current_user, create_message_type.name, create_message_type.validation,
    create_message_type.validator, create_message_type.schema, create_message_type.if_not_exists
  );
end;
comment on function sb.create_message_type(text, text, regprocedure, jsonb, boolean) is
  'CREATE MESSAGE TYPE. validation: NONE, EMPTY, WELL_FORMED_XML, VALID_XML (needs validator, a function (xml) returns boolean), WELL_FORMED_JSON, VALID_JSON (needs validator, a function (jsonb) returns boolean, or schema, a JSON schema). A validator runs with the rights of whoever sends. Admins only. Errors: 42501, 42602 name, 42710 exists, 22023 arguments that do not fit together or a schema keyword that is not supported (R-018 to R-020). Locks: the catalog.';
revoke all on function sb.create_message_type(text, text, regprocedure, jsonb, boolean) from public;
