create or replace function sb_internal._queue_is_on(queue_id integer)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select q.is_enabled
           and not (q.is_poison_message_handling_enabled and sb_internal._poison_limit_reached(q.queue_id))
      from sb_internal.queue as q
     where q.queue_id = _queue_is_on.queue_id);
end
$$;
comment on function sb_internal._queue_is_on(integer) is
  'Whether a queue takes and gives messages: switched on, and its poison limit not reached (which is OFF from that moment, before anybody has written it down).';
revoke all on function sb_internal._queue_is_on(integer) from public;
