create or replace function sb_internal._arrived(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._wake(_arrived.queue_id);
  if (select q.has_activation_event from sb_internal.queue as q where q.queue_id = _arrived.queue_id) then
    perform sb_internal._monitor_arrival(_arrived.queue_id);
  end if;
end
$$;
comment on function sb_internal._arrived(integer) is
  'What follows the arrival of messages in a queue: waiters are notified, a watching QUEUE_ACTIVATION notification gets its event.';
revoke all on function sb_internal._arrived(integer) from public;
