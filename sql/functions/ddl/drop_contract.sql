create or replace function sb.drop_contract(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_contract(current_user, drop_contract.name, drop_contract.if_exists);
end;
comment on function sb.drop_contract(text, boolean) is
  'DROP CONTRACT. Conversations that still follow it end with an error: their initiator side goes, the target side gets Error -8487; a side whose initiator is elsewhere goes itself and tells the peer (R-039). For the owner and admins. Errors: 42501, 42704, S3716 listed by a service or a broker priority (R-038), S9663. Locks: the catalog, then the endpoint table against new dialogs, then groups and endpoints of these conversations, all at once or none.';
revoke all on function sb.drop_contract(text, boolean) from public;
