create or replace function sb.enable_broker()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._switch_broker(current_user, true);
end;
comment on function sb.enable_broker() is
  'ALTER DATABASE SET ENABLE_BROKER: messages are delivered again, those that wait at once; the broker instance stays (R-118). Admins only. Errors: 42501. Locks: the catalog; conversations with skip locked.';
revoke all on function sb.enable_broker() from public;
