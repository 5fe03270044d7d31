create or replace function sb_internal._monitor_receive(queue_id integer, got_messages boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform 1
     from sb_internal.queue_monitor as m
    where m.queue_id = _monitor_receive.queue_id
      and (not _monitor_receive.got_messages or m.state <> 'RECEIVES_OCCURRING')
      for no key update skip locked;
  if found then
    update sb_internal.queue_monitor as m
       set state = case when _monitor_receive.got_messages then 'RECEIVES_OCCURRING' else 'INACTIVE' end,
           last_empty_rowset_time = case when _monitor_receive.got_messages then m.last_empty_rowset_time
             else sb_internal._now() end
     where m.queue_id = _monitor_receive.queue_id;
  end if;
end
$$;
comment on function sb_internal._monitor_receive(integer, boolean) is
  'Somebody received from a watched queue: RECEIVES_OCCURRING, or INACTIVE when nothing was there. Never waits.';
revoke all on function sb_internal._monitor_receive(integer, boolean) from public;
