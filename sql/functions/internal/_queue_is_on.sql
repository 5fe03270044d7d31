create or replace function sb_internal._queue_is_on(queue_id integer)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  q record;
begin
  select o.is_enabled, o.is_poison_message_handling_enabled, b.poison_message_threshold
    into q
    from sb_internal.queue as o
   cross join sb_internal.broker as b
   where o.queue_id = _queue_is_on.queue_id
     and b.singleton;
  return q.is_enabled
    and (not q.is_poison_message_handling_enabled
      or sb_internal._poison_count(_queue_is_on.queue_id) < q.poison_message_threshold);
end
$$;
comment on function sb_internal._queue_is_on(integer) is
  'Whether a queue takes and gives messages: switched on, and its poison limit not reached (which is OFF from that moment, before anybody has written it down).';
revoke all on function sb_internal._queue_is_on(integer) from public;
