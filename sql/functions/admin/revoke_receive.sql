create or replace function sb.revoke_receive(
  queue_name text,
  role name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_access(
    current_user, 'receive', revoke_receive.queue_name, revoke_receive.role, false
  );
end;
comment on function sb.revoke_receive(text, name) is
  'Takes sb.grant_receive back, and with its last right all that a role needs to call the verbs. For the owner of the queue and admins. Errors: 42501, S0208, 42704 no such role, S9663. Locks: the catalog.';
revoke all on function sb.revoke_receive(text, name) from public;
