create or replace function sb_internal._poison_disable(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  queue_name text;
begin
  -- Whoever commits first makes it lasting; a rival that is about to is not waited for.
  perform 1
     from sb_internal.queue as q
    where q.queue_id = _poison_disable.queue_id
      and q.is_enabled
      for no key update skip locked;
  if not found then
    return;
  end if;
  update sb_internal.queue as q
     set is_enabled = false,
         is_poison_disabled = true
   where q.queue_id = _poison_disable.queue_id
  returning q.name into queue_name;
  perform sb_internal._send_event(_poison_disable.queue_id, 'BROKER_QUEUE_DISABLED');
  perform pg_notify('sb_events',
    json_build_object('event', 'queue_disabled', 'queue', queue_name, 'cause', 'poison')::text);
  perform pg_notify('sb_queue_' || _poison_disable.queue_id, '');
end
$$;
comment on function sb_internal._poison_disable(integer) is
  'Writes down that the poison limit switched the queue off and sends BROKER_QUEUE_DISABLED, in this transaction.';
revoke all on function sb_internal._poison_disable(integer) from public;
