create or replace function sb_internal._lifetime_error()
  returns bytea
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  return sb_internal._error_body(sb_internal._system_namespace(), -8489, 'The dialog has exceeded its lifetime.');
end
$$;
comment on function sb_internal._lifetime_error() is
  'The body of the Error that a conversation past its lifetime has ready, for sb.queue_messages.';
revoke all on function sb_internal._lifetime_error() from public;
