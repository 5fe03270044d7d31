create or replace function sb_internal._validator(
  message_type text,
  out validator text,
  out validation text
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  select t.validator, t.validation
    into _validator.validator, _validator.validation
    from sb_internal.message_type as t
   where t.name = _validator.message_type;
end
$$;
comment on function sb_internal._validator(text) is
  'The validator function of a message type, for the step that runs with the callers rights.';
revoke all on function sb_internal._validator(text) from public;
