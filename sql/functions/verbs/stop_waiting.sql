create or replace function sb.stop_waiting(queue_name text)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._waiting(current_user, stop_waiting.queue_name, false);
end;
comment on function sb.stop_waiting(text) is
  'Takes the announcement of start_waiting back.';
revoke all on function sb.stop_waiting(text) from public;
