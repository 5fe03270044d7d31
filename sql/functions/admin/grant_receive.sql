create or replace function sb.grant_receive(
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
    current_user, 'receive', grant_receive.queue_name, grant_receive.role, true
  );
end;
comment on function sb.grant_receive(text, name) is
  'Lets the role receive from the queue, begin dialogs from its services and use their conversations (R-374); public is everybody. Also gives what is needed to call the verbs. For the owner of the queue and admins. Errors: 42501, S0208, 42704 no such role, S9663. Locks: the catalog.';
revoke all on function sb.grant_receive(text, name) from public;
