create or replace function sb.start_waiting(queue_name text)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._waiting(current_user, start_waiting.queue_name, true);
end;
comment on function sb.start_waiting(text) is
  'Announces that this session LISTENs for the queue (channel sb_queue_<queue_id>) and is about to sleep: senders notify only then. Look once more after the call, then sleep, then call stop_waiting. Held by the session, not the transaction: not for pooled connections. Needs receive on the queue. Errors: S0208, 42501.';
revoke all on function sb.start_waiting(text) from public;
