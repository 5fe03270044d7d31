create or replace function sb.probe_queue(queue_id integer, out head bigint, out receives bigint,
  out waited double precision)
  returns record
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select p.head, p.receives, p.waited
    from sb_internal._probe_queue(current_user, probe_queue.queue_id) as p;
end;
comment on function sb.probe_queue(integer) is
  'For activators: head is null when a receive would get nothing now (empty, off, all groups held or in back-off), else a number that stands for the message it would begin with: the same number again means that nobody has received that message. receives is the counter of activation_scan, null while poison handling is off. waited is for how many seconds that message has been there, or its timer due. Takes nothing and holds nothing. Admins only. Locks: a group, given back at once.';
revoke all on function sb.probe_queue(integer) from public;
