create or replace function sb_internal._monitor_arrival(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- Who finds the row locked leaves the event to its holder; maintain looks again.
  perform 1
     from sb_internal.queue_monitor as m
    where m.queue_id = _monitor_arrival.queue_id
      and m.state = 'INACTIVE'
      for no key update skip locked;
  if found then
    update sb_internal.queue_monitor as m
       set state = 'NOTIFIED', last_activated_time = sb_internal._now()
     where m.queue_id = _monitor_arrival.queue_id;
    perform sb_internal._send_event(_monitor_arrival.queue_id, 'QUEUE_ACTIVATION');
  end if;
end
$$;
comment on function sb_internal._monitor_arrival(integer) is
  'A message arrived on a queue that a QUEUE_ACTIVATION notification watches: INACTIVE becomes NOTIFIED and the event is sent (R-316, R-340). Never waits.';
revoke all on function sb_internal._monitor_arrival(integer) from public;
