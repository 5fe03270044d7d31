create or replace function sb.activation_scan(queue_ids integer[])
  returns table (queue_id integer, is_on boolean, has_ready boolean, due_in double precision, receives bigint)
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select s.queue_id, s.is_on, s.has_ready, s.due_in, s.receives
    from sb_internal._activation_scan(current_user, activation_scan.queue_ids) as s;
end;
comment on function sb.activation_scan(integer[]) is
  'For activators: whether queues are on (and the broker is, R-314), have any ready row at all (locked ones included, and what time has made due), in how many seconds the next timer or lifetime is due, and a counter that moves with every receive of messages while poison handling is on. Writes down, and announces, that the poison limit switched a queue off. Admins only. Locks: rows of queues to switch off, with skip locked.';
revoke all on function sb.activation_scan(integer[]) from public;
