create or replace function sb.deliver(queue_name text default null)
  returns bigint
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._deliver_queue(current_user, deliver.queue_name);
end;
comment on function sb.deliver(text) is
  'Moves on what waits in the transmission queue and can be delivered, for one queue or all, and returns how many messages. Skips conversations that are locked. For admins. Errors: S0208, 42501.';
revoke all on function sb.deliver(text) from public;
