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
  end if;
  -- A queue may be switched on between our look at it and our commit, its switch not seeing our row:
  -- so whoever parks a row tells the activator.
  perform pg_notify('sb_events', json_build_object('event', 'transmission_waiting')::text);
end
$$;
comment on function sb_internal._parked(sb_internal.endpoint, boolean) is
  'After a row was put into the transmission queue: moves the conversation on if it may, and tells the activator, so that no row is stranded. The caller holds the endpoint lock.';
revoke all on function sb_internal._parked(sb_internal.endpoint, boolean) from public;
