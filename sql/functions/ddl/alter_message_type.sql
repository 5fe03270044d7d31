create or replace function sb.alter_message_type(
  name text,
  validation text default null,
  validator regprocedure default null,
  schema jsonb default null
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_message_type(
    current_user, alter_message_type.name, alter_message_type.validation,
    alter_message_type.validator, alter_message_type.schema
  );
end;
comment on function sb.alter_message_type(text, text, regprocedure, jsonb) is
  'ALTER MESSAGE TYPE: null leaves a setting as it is; validation NONE clears validator and schema, a validator replaces a schema and the other way round. Messages already sent are not validated again (R-026, R-027). For the owner and admins; a validator for admins only. Errors: 42501, 42704, 22023, S9663 system type. Locks: the catalog; senders are not blocked.';
revoke all on function sb.alter_message_type(text, text, regprocedure, jsonb) from public;
