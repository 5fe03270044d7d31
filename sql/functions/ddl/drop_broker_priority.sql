create or replace function sb.drop_broker_priority(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_broker_priority(
    current_user, drop_broker_priority.name, drop_broker_priority.if_exists
  );
end;
comment on function sb.drop_broker_priority(text, boolean) is
  'DROP BROKER PRIORITY: endpoints that exist keep what they have (R-106). Admins only. Errors: 42501, 42704. Locks: the catalog.';
revoke all on function sb.drop_broker_priority(text, boolean) from public;
