create or replace function sb.queue_writers()
  returns text[]
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._queue_writers(current_user);
end;
comment on function sb.queue_writers() is
  'For activators: the transactions that have written messages or timers and not ended yet. Those that were here when a waiting flag went up may have missed it; when none of them is left, whatever comes notifies. Admins only. Locks: none.';
revoke all on function sb.queue_writers() from public;
