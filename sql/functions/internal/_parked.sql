create or replace function sb_internal._parked(e sb_internal.endpoint, try_now boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _parked.try_now then
    perform sb_internal._deliver_conversation(e);
  else
    update sb_internal.send_counter as c
       set is_waiting = true
     where c.conversation_handle = e.conversation_handle;
  end if;
  -- A queue may be switched on between our look at it and our commit, its switch not seeing our row:
  -- so whoever parks a row tells the activator.
  perform pg_notify('sb_events', json_build_object('event', 'transmission_waiting')::text);
end
$$;
comment on function sb_internal._parked(sb_internal.endpoint, boolean) is
  'After a row was put into the transmission queue: marks the conversation, or moves it on if it may already, and tells the activator, so that no row is stranded. The caller holds the counter lock.';
revoke all on function sb_internal._parked(sb_internal.endpoint, boolean) from public;
