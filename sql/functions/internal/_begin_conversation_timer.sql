create or replace function sb_internal._begin_conversation_timer(
  caller name,
  conversation_handle uuid,
  timeout interval
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint;
  fires_at timestamptz;
  queue integer;
begin
  if _begin_conversation_timer.timeout is null or _begin_conversation_timer.timeout <= interval '0' then
    perform sb_internal._raise('22023', array['timeout must be greater than zero']);
  end if;
  if extract(epoch from _begin_conversation_timer.timeout) > 2147483647 then
    perform sb_internal._raise('22023', array['timeout may be at most 2147483647 seconds']);
  end if;
  e := sb_internal._hold_conversation(_begin_conversation_timer.conversation_handle);
  perform sb_internal._may_use_conversation(_begin_conversation_timer.caller, e, 'set a timer on');
  if e.state = 'DO' then
    perform sb_internal._raise('S8458', array[e.conversation_handle::text, e.state]);
  end if;
  fires_at := sb_internal._now() + _begin_conversation_timer.timeout;
  if fires_at > e.lifetime then
    perform sb_internal._raise('S8410', array[e.conversation_handle::text]);
  end if;
  perform sb_internal._hold_service(e.service_id);
  select s.queue_id
    into queue
    from sb_internal.service as s
   where s.service_id = e.service_id;
  insert into sb_internal.due as d (conversation_handle, is_lifetime, conversation_group_id, queue_id, priority, due_at)
  values (e.conversation_handle, false, e.conversation_group_id, queue, e.priority,
    fires_at)
  on conflict on constraint due_pkey do update
     set due_at = excluded.due_at;
  -- Whoever sleeps until the earliest due time has to hear of an earlier one.
  perform sb_internal._wake(queue);
end
$$;
comment on function sb_internal._begin_conversation_timer(name, uuid, interval) is
  'BEGIN CONVERSATION TIMER behind sb.begin_conversation_timer.';
revoke all on function sb_internal._begin_conversation_timer(name, uuid, interval) from public;
