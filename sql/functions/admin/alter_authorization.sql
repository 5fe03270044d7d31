create or replace function sb.alter_authorization(
  kind text,
  name text,
  new_owner name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_authorization(
    current_user, alter_authorization.kind, alter_authorization.name, alter_authorization.new_owner
  );
end;
comment on function sb.alter_authorization(text, text, name) is
  'ALTER AUTHORIZATION: gives a message_type, contract, queue, service or route to another role, which also gets what it needs to call the verbs. The caller must own the object, or be an admin, and be a member of the new owner (R-010). Errors: 42501, 22023 kind, 42704, S0208, S8423, S9663. Locks: the catalog.';
revoke all on function sb.alter_authorization(text, text, name) from public;
