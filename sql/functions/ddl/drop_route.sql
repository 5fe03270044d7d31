create or replace function sb.drop_route(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_route(current_user, drop_route.name, drop_route.if_exists);
end;
comment on function sb.drop_route(text, boolean) is
  'DROP ROUTE: always allowed; messages that used it wait for another (R-086). For the owner and admins. Errors: 42501, 42704. Locks: the catalog.';
revoke all on function sb.drop_route(text, boolean) from public;
