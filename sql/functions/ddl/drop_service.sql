create or replace function sb.drop_service(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_service(current_user, drop_service.name, drop_service.if_exists);
end;
comment on function sb.drop_service(text, boolean) is
  'DROP SERVICE with its conversations and messages; the peer of each gets Error -8470 (R-076). For the owner and admins. Errors: 42501, S8423, S3716 named as local service by a broker priority (R-075), S9663. Locks: the catalog, then service row, groups and endpoints, all at once or none: waits for transactions that use them, holding nothing meanwhile.';
revoke all on function sb.drop_service(text, boolean) from public;
