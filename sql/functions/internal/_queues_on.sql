create or replace function sb_internal._queues_on()
  returns integer[]
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select q.queue_id
      from sb_internal.queue as q
     where sb_internal._queue_is_on(q.queue_id));
end
$$;
comment on function sb_internal._queues_on() is
  'Ids of the queues that are on, poison limits included; for views, whose functions run as whoever reads them.';
revoke all on function sb_internal._queues_on() from public;
