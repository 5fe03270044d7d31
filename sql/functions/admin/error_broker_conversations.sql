create or replace function sb.error_broker_conversations()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._error_broker_conversations(current_user);
end;
comment on function sb.error_broker_conversations() is
  'ALTER DATABASE SET ERROR_BROKER_CONVERSATIONS: every conversation gets an Error -9719 and is to be ended by its application; the broker is enabled and keeps its instance (R-121). Admins only. Errors: 42501, 25001 above read committed. Locks: the catalog, then all messaging tables: waits until no transaction uses them and holds off new ones until commit.';
revoke all on function sb.error_broker_conversations() from public;
