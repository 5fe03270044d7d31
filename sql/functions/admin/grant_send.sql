create or replace function sb.grant_send(
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
    current_user, 'send', grant_send.service_name, grant_send.role, true
  );
end;
comment on function sb.grant_send(text, name) is
  'Lets services owned by the role begin dialogs with the service and send to it (R-374); public is everybody. Also gives what is needed to call the verbs. For the owner of the service and admins. Errors: 42501, S8423, 42704 no such role, S9663. Locks: the catalog.';
revoke all on function sb.grant_send(text, name) from public;
