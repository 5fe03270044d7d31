create or replace function sb_internal._has_validator(message_type_id integer)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select 1
      from sb_internal.message_type as t
     where t.message_type_id = _has_validator.message_type_id
       and t.validator is not null);
end
$$;
comment on function sb_internal._has_validator(integer) is
  'Whether the message type has a validator function.';
revoke all on function sb_internal._has_validator(integer) from public;
