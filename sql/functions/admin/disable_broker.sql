create or replace function sb.disable_broker()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._switch_broker(current_user, false);
end;
comment on function sb.disable_broker() is
  'ALTER DATABASE SET DISABLE_BROKER: what is sent waits in the transmission queue, what has arrived can still be received; DDL works (R-119). Admins only. Errors: 42501. Locks: the catalog.';
revoke all on function sb.disable_broker() from public;
