create or replace function sb.take_reader(
  queue_id integer,
  max_readers integer default null,
  for_session boolean default false
)
  returns boolean
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._take_reader(current_user, take_reader.queue_id, take_reader.max_readers, take_reader.for_session);
end;
comment on function sb.take_reader(integer, integer, boolean) is
  'For activators: takes one of the queue''s reader slots until the transaction ends (or, for_session, until the session ends or unlocks all), false when all are taken. The queue''s max_queue_readers is the limit over all activators (R-324); max_readers may lower it, and is the limit where the queue has none. Admins only. Locks: an advisory lock, never waited for.';
revoke all on function sb.take_reader(integer, integer, boolean) from public;
