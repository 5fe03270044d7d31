create or replace function sb.create_contract(
  name text,
  sent_by_initiator text[] default '{}',
  sent_by_target text[] default '{}',
  sent_by_any text[] default '{}',
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_contract(
    current_user, create_contract.name, create_contract.sent_by_initiator,
    create_contract.sent_by_target, create_contract.sent_by_any, create_contract.if_not_exists
  );
end;
comment on function sb.create_contract(text, text[], text[], text[], boolean) is
  'CREATE CONTRACT: which side may send which message types; it never changes afterwards (R-029 to R-033). Admins only. Errors: 42501, 42602 name, 42710 exists, 42704 no such message type, S8403 type listed twice, S8492 nothing for the initiator to send, S9663 a type that comes on every conversation anyway. Locks: the catalog.';
revoke all on function sb.create_contract(text, text[], text[], text[], boolean) from public;
