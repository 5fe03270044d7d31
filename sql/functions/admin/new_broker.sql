create or replace function sb.new_broker()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._new_broker(current_user);
end;
comment on function sb.new_broker() is
  'ALTER DATABASE SET NEW_BROKER: a new broker instance, enabled; every conversation with its messages is gone without a word to anybody (R-120). Admins only. Errors: 42501. Locks: the catalog, then all messaging tables: waits until no transaction uses them and holds off new ones until commit.';
revoke all on function sb.new_broker() from public;
