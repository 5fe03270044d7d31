create or replace function sb_internal._parked(e sb_internal.endpoint, is_waiting boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not _parked.is_waiting then
    update sb_internal.send_counter as c
       set is_waiting = true
     where c.conversation_handle = e.conversation_handle;
  end if;
  -- The way may have been opened between our look at it and our insert, which waited for that
  -- (_deliver_now): so look again. And tell the activator, for the cases that escape both.
  if sb_internal._undeliverable(e.far_service, e.far_broker_instance) is null then
    perform sb_internal._deliver_conversation(e);
  end if;
  perform pg_notify('sb_events', json_build_object('event', 'transmission_waiting')::text);
end
$$;
comment on function sb_internal._parked(sb_internal.endpoint, boolean) is
  'After a row was put into the transmission queue: marks the conversation (is_waiting: it is already), moves it on if it may, and tells the activator, so that no row is stranded. The caller holds the counter lock.';
revoke all on function sb_internal._parked(sb_internal.endpoint, boolean) from public;
