create or replace function sb.grant_references(
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
    current_user, 'references', grant_references.contract_name, grant_references.role, true
  );
end;
comment on function sb.grant_references(text, name) is
  'Lets the role use the contract: begin dialogs on it, add it to services of its own (R-372, R-374); public is everybody. Also gives what is needed to call the verbs. For the owner of the contract and admins. Errors: 42501, 42704 no such contract or role, S9663. Locks: the catalog.';
revoke all on function sb.grant_references(text, name) from public;
