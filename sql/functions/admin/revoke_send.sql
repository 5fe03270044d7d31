create or replace function sb.revoke_send(
  service_name text,
  role name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_access(
    current_user, 'send', revoke_send.service_name, revoke_send.role, false
  );
end;
comment on function sb.revoke_send(text, name) is
  'Takes sb.grant_send back, and with its last right all that a role needs to call the verbs. Conversations that exist go on. For the owner of the service and admins. Errors: 42501, S8423, 42704 no such role, S9663. Locks: the catalog.';
revoke all on function sb.revoke_send(text, name) from public;
