create or replace function sb_internal._deliver_conversation(e sb_internal.endpoint)
  returns bigint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  target record;
  row_waiting record;
  last_sequence bigint := (-2)::bigint;
  outcome text;
  moved bigint := 0::bigint;
begin
  if not (select b.is_broker_enabled from sb_internal.broker as b where b.singleton) then
    return moved;
  end if;
  -- After the peer's end, an Error or the end of the lifetime nothing leaves any more; it stays readable
  -- until the application ends its side (R-250, R-251).
  if e.state <> 'DO'
    and sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle) in ('DI', 'ER')
  then
    return moved;
  end if;
  -- alter_service moves a service's messages under an exclusive lock of this table: once we hold ours,
  -- the queue read below stays the right one.
  lock table sb_internal.message in row exclusive mode;

  -- One by one: all at once the planner would rather fetch and sort, and mostly the first cannot leave.
  loop
    select t.message_sequence_number, t.message_type_id, t.message_body
      into row_waiting
      from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle
       and t.message_sequence_number > last_sequence
     order by t.message_sequence_number
     limit 1;
    exit when not found;
    last_sequence := row_waiting.message_sequence_number;
    select p.conversation_group_id, p.priority, p.state, s.queue_id
      into target
      from sb_internal.endpoint as p
      join sb_internal.service as s on s.service_id = p.service_id
     where p.conversation_handle = e.peer_handle;
    if not found and e.is_initiator and row_waiting.message_sequence_number = 0 then
      select t.outcome
        into outcome
        from sb_internal.service_status as o
       cross join lateral sb_internal._create_target(e, o, sb_internal._find_target(e.far_service)) as t
       where o.service_id = e.service_id;
      exit when outcome = 'wait';
      if outcome = 'created' then
        select p.conversation_group_id, p.priority, p.state, s.queue_id
          into target
          from sb_internal.endpoint as p
          join sb_internal.service as s on s.service_id = p.service_id
         where p.conversation_handle = e.peer_handle;
      else
        -- Failed for good: what waits behind stays readable until the application ends its side (R-251).
        exit when e.state <> 'DO';
      end if;
    end if;

    if target.queue_id is null or target.state = 'DO' then
      -- The peer is gone: what it does not want any more is dropped (R-220). Gone without a word is
      -- an Error for a side that still wants to talk.
      if target.queue_id is null and e.state = 'CO' and outcome is null
        and not exists (
          select 1
            from sb_internal.message as m
           where m.conversation_handle = e.conversation_handle
             and m.message_type_id in (1, 2))
      then
        perform sb_internal._error_endpoint(e.conversation_handle, -8462,
          'The remote conversation endpoint has been closed.');
      end if;
    else
      exit when not sb_internal._queue_is_on(target.queue_id);
      insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
        message_type_id, conversation_handle, conversation_group_id, priority, message_body)
      values (nextval('sb_internal.queuing_order'), row_waiting.message_sequence_number, sb_internal._now(),
        target.queue_id, row_waiting.message_type_id, e.peer_handle, target.conversation_group_id,
        target.priority, row_waiting.message_body);
      moved := moved + 1;
    end if;
    delete from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle
       and t.message_sequence_number = row_waiting.message_sequence_number;
  end loop;

  if moved > 0 then
    perform sb_internal._arrived(target.queue_id);
  end if;
  if not exists (
    select 1
      from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle)
  then
    if e.state = 'DO' then
      delete from sb_internal.endpoint as o
       where o.conversation_handle = e.conversation_handle;
    else
      update sb_internal.send_counter as c
         set is_waiting = false
       where c.conversation_handle = e.conversation_handle;
    end if;
  end if;
  return moved;
end
$$;
comment on function sb_internal._deliver_conversation(sb_internal.endpoint) is
  'Moves on, in order, what a conversation has in the transmission queue, as far as it can be delivered now; returns how many messages. The caller holds the counter lock, so that nothing overtakes, and for a side in DO the endpoint lock. A side in DO whose last message has left is removed.';
revoke all on function sb_internal._deliver_conversation(sb_internal.endpoint) from public;
