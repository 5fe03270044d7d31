create or replace function sb.revoke_references(
  contract_name text,
  role name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_access(
    current_user, 'references', revoke_references.contract_name, revoke_references.role, false
  );
end;
comment on function sb.revoke_references(text, name) is
  'Takes sb.grant_references back, and with its last right all that a role needs to call the verbs. For the owner of the contract and admins. Errors: 42501, 42704 no such contract or role, S9663. Locks: the catalog.';
revoke all on function sb.revoke_references(text, name) from public;
