-- Plans are made once a session, perhaps while the tables are empty, and not again at every call: see _receive.
create or replace function sb_internal._end_conversation(
  caller name,
  conversation_handle uuid,
  error_code integer,
  error_description text,
  cleanup boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  e sb_internal.endpoint;
  state text;
  last_sequence bigint;
  body bytea;
  target record;
begin
  if _end_conversation.cleanup is null then
    perform sb_internal._raise('22023', array['cleanup may not be null']);
  end if;
  if _end_conversation.cleanup
    and (_end_conversation.error_code is not null or _end_conversation.error_description is not null)
  then
    perform sb_internal._raise('22023', array['cleanup and error_code exclude each other']);
  end if;
  if (_end_conversation.error_code is null) <> (_end_conversation.error_description is null) then
    perform sb_internal._raise('S8424');
  end if;
  if _end_conversation.error_code <= 0 then
    perform sb_internal._raise('S8419');
  end if;
  if char_length(_end_conversation.error_description) > 3000 then
    perform sb_internal._raise('22023', array['error_description may have at most 3000 characters']);
  end if;

  e := sb_internal._lock_conversation(_end_conversation.conversation_handle);
  perform sb_internal._may_use_conversation(_end_conversation.caller, e, 'end');
  if _end_conversation.cleanup then
    perform sb_internal._forget(e, false);
    return;
  end if;

  state := sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle);
  if state = 'DO' then
    perform sb_internal._raise('S8427', array[e.conversation_handle::text, state]);
  end if;
  if state <> 'CO' and state <> 'SO' then
    -- The peer has ended, or an error did it: nothing is sent (R-219), what still waits is dropped (R-251).
    perform sb_internal._forget(e, false);
    return;
  end if;

  -- What waits for delivery goes first, so that only what must wait makes this side wait in DO.
  if _end_conversation.error_code is not null then
    body := sb_internal._error_body(sb_internal._system_namespace(), _end_conversation.error_code,
      _end_conversation.error_description);
    delete from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle;
  elsif exists (
    select 1
      from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle)
  then
    perform sb_internal._deliver_conversation(e);
  end if;

  select (select n.message_sequence_number
            from sb_internal.send_counter as n
           where n.conversation_handle = e.conversation_handle
           order by n.conversation_handle desc, n.message_sequence_number desc
           limit 1)
    into last_sequence;

  select p.conversation_group_id, p.priority, p.state, p.service_id, q.queue_id,
         b.is_broker_enabled and sb_internal._queue_is_on(q.queue_id) as is_on,
         exists (
           select 1
             from sb_internal.transmission as t
            where t.conversation_handle = e.conversation_handle) as is_waiting
    into target
    from sb_internal.broker as b
    left join sb_internal.endpoint as p on p.conversation_handle = e.peer_handle
    left join sb_internal.service as s on s.service_id = p.service_id
    left join sb_internal.queue as q on q.queue_id = s.queue_id
   where b.singleton;

  if target.is_waiting or (target.queue_id is not null and target.state <> 'DO' and not target.is_on) then
    insert into sb_internal.transmission (conversation_handle, message_sequence_number, message_type_id,
      enqueue_time, to_service_name, message_body)
    values (e.conversation_handle, case when body is null then coalesce(last_sequence + 1, 0) else -1 end,
      case when body is null then 2 else 1 end, sb_internal._now(), e.far_service, body);
    perform sb_internal._forget(e, true);
    e.state := 'DO';
    perform sb_internal._parked(e, false);
    return;
  end if;

  -- A peer that never came to be, or is gone, is told nothing.
  if target.queue_id is not null and target.state <> 'DO' then
    perform sb_internal._hold_service(target.service_id);
    insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body)
    values (nextval('sb_internal.queuing_order'),
      case when body is null then coalesce(last_sequence + 1, 0) else -1 end, sb_internal._now(),
      target.queue_id, case when body is null then 2 else 1 end, e.peer_handle,
      target.conversation_group_id, target.priority, body);
    perform sb_internal._arrived(target.queue_id);
  end if;
  perform sb_internal._forget(e, false);
end
$$;
comment on function sb_internal._end_conversation(name, uuid, integer, text, boolean) is
  'END CONVERSATION behind sb.end_conversation, in its three forms.';
revoke all on function sb_internal._end_conversation(name, uuid, integer, text, boolean) from public;
