create or replace function sb_internal._send(
  caller name,
  conversation_handle uuid,
  message_type text,
  bodies bytea[],
  is_text boolean,
  is_validated boolean
)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint;
  c record;
  single bytea;
  sequence bigint;
  outcome text;
  target_on boolean;
begin
  if _send.conversation_handle is null then
    perform sb_internal._raise('S8418');
  end if;
  if _send.message_type is null or _send.message_type = '' or char_length(_send.message_type) > 128 then
    perform sb_internal._require_name(_send.message_type, 'message type', 128);
  end if;

  -- The lock is a statement of its own: what is looked at afterwards must be looked at after the wait.
  select o.*
    into e
    from sb_internal.endpoint as o
   where o.conversation_handle = _send.conversation_handle
     for no key update;
  if not found then
    perform sb_internal._raise('S8426', array[_send.conversation_handle::text]);
  end if;

  -- Everything SEND has to know, one index probe each. Touching message here also holds off
  -- alter_service, which moves messages to another queue, until this transaction has ended.
  select q.queue_id as own_queue_id, q.owner, q.receivers, q.is_enabled as own_enabled, q.is_retention_enabled,
         b.is_broker_enabled, b.poison_message_threshold,
         t.message_type_id, t.validation, t.is_sent_by_initiator, t.is_sent_by_target,
         p.conversation_group_id, p.priority, p.state as peer_state,
         d.queue_id, d.is_enabled, d.is_poison_message_handling_enabled, d.has_activation_event,
         (select n.message_sequence_number
            from sb_internal.send_counter as n
           where n.conversation_handle = _send.conversation_handle
           order by n.conversation_handle desc, n.message_sequence_number desc
           limit 1) as last_sequence,
         exists (
           select 1
             from sb_internal.message as m
            where m.conversation_handle = _send.conversation_handle
              and m.message_type_id in (1, 2)) as is_ended,
         exists (
           select 1
             from sb_internal.transmission as w
            where w.conversation_handle = _send.conversation_handle) as is_waiting
    into c
    from sb_internal.service as s
    join sb_internal.queue as q on q.queue_id = s.queue_id
   cross join sb_internal.broker as b
    left join sb_internal.contract_message as t
      on t.service_contract_id = e.service_contract_id
     and t.message_type_name = _send.message_type
    left join sb_internal.endpoint as p on p.conversation_handle = e.peer_handle
    left join sb_internal.service as r on r.service_id = p.service_id
    left join sb_internal.queue as d on d.queue_id = r.queue_id
   where s.service_id = e.service_id
     and b.singleton;

  if _send.caller <> c.owner and not (_send.caller = any (c.receivers))
    and not sb_internal._may(_send.caller, c.owner, c.receivers)
  then
    perform sb_internal._raise('42501', array[_send.caller::text, 'send on this conversation'],
      'conversation_handle=' || _send.conversation_handle);
  end if;
  if e.state <> 'CO' or c.is_ended or e.lifetime <= sb_internal._now() then
    perform sb_internal._raise('S8429', array[_send.conversation_handle::text,
      sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle)]);
  end if;
  if not c.own_enabled and c.is_retention_enabled then
    perform sb_internal._raise('S9618', array[(
      select q.name from sb_internal.queue as q where q.queue_id = c.own_queue_id)]);
  end if;
  if c.message_type_id is null then
    perform sb_internal._refuse_message_type(_send.message_type, e.service_contract_id);
  elsif e.is_initiator and not c.is_sent_by_initiator then
    perform sb_internal._raise('S8432', array[_send.message_type]);
  elsif not e.is_initiator and not c.is_sent_by_target then
    perform sb_internal._raise('S8434', array[_send.message_type]);
  end if;

  if cardinality(_send.bodies) = 1 then
    single := _send.bodies[1];
    if single is null then
      perform sb_internal._raise('S8433');
    elsif octet_length(single) > 268435456 then
      perform sb_internal._raise('S8459', array[octet_length(single)::text]);
    elsif octet_length(single) = 0 then
      -- No body, zero length: all the same to the receiver (R-156).
      single := null;
    end if;
  elsif _send.bodies is not null then
    bodies := sb_internal._clean_bodies(_send.bodies);
    if cardinality(bodies) = 0 then
      return true;
    end if;
  end if;

  if c.validation <> 'NONE' and not _send.is_validated then
    if exists (
      select 1
        from unnest(coalesce(bodies, array[null::bytea])) as b (body)
       where not sb_internal._is_valid_body(c.message_type_id, c.validation, nullif(b.body, ''), _send.is_text))
    then
      perform sb_internal._invalid_body(e, _send.message_type, c.validation);
      return true;
    elsif bodies is not null and sb_internal._has_validator(c.message_type_id) then
      -- The caller's wrapper runs the validator with the caller's rights and comes back.
      return false;
    end if;
  end if;

  -- Where to: straight into the peer's queue when that is there and on and nothing is ahead of us,
  -- else into the transmission queue.
  if c.queue_id is null then
    if c.last_sequence is null and e.is_initiator and not c.is_waiting and c.is_broker_enabled then
      outcome := sb_internal._create_target(e);
      if outcome = 'error' then
        return true;
      elsif outcome = 'created' then
        select p.conversation_group_id, p.priority, q.queue_id, q.has_activation_event
          into c.conversation_group_id, c.priority, c.queue_id, c.has_activation_event
          from sb_internal.endpoint as p
          join sb_internal.service as s on s.service_id = p.service_id
          join sb_internal.queue as q on q.queue_id = s.queue_id
         where p.conversation_handle = e.peer_handle;
        target_on := true;
      end if;
    elsif not c.is_waiting and c.last_sequence is not null then
      -- The peer was there and is gone without a word: cleaned up (R-227).
      perform sb_internal._error_endpoint(e.conversation_handle, -8462,
        'The remote conversation endpoint has been closed.');
      return true;
    elsif not c.is_waiting and not e.is_initiator then
      perform sb_internal._error_endpoint(e.conversation_handle, -8462,
        'The remote conversation endpoint has been closed.');
      return true;
    end if;
  else
    target_on := c.is_enabled and c.is_broker_enabled;
    if target_on and c.is_poison_message_handling_enabled
      and sb_internal._poison_count(c.queue_id) >= c.poison_message_threshold
    then
      target_on := false;
      perform sb_internal._poison_disable(c.queue_id);
    end if;
  end if;

  -- The endpoint row stays as it is; the counter is the only row of this side that a send rewrites.
  sequence := coalesce(c.last_sequence + 1, 0);
  if c.last_sequence is null then
    insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
    values (_send.conversation_handle, sequence + coalesce(cardinality(bodies), 1) - 1);
  else
    update sb_internal.send_counter as n
       set message_sequence_number = sequence + coalesce(cardinality(bodies), 1) - 1
     where n.conversation_handle = _send.conversation_handle
       and n.message_sequence_number = c.last_sequence;
    if not found then
      -- Only a snapshot older than the lock can miss the row.
      perform sb_internal._raise('40001');
    end if;
  end if;
  if c.is_retention_enabled then
    perform sb_internal._retain_sent(e, c.own_queue_id, c.message_type_id, sequence,
      coalesce(bodies, array[null::bytea]));
  end if;

  if target_on and not c.is_waiting then
    if c.peer_state = 'DO' then
      -- The peer has ended; its EndDialog has not arrived here yet. What it gets is discarded (R-220).
      return true;
    end if;
    if cardinality(bodies) > 1 then
      insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
        message_type_id, conversation_handle, conversation_group_id, priority, message_body)
      select nextval('sb_internal.queuing_order'), sequence + b.ordinality - 1, sb_internal._now(), c.queue_id,
             c.message_type_id, e.peer_handle, c.conversation_group_id, c.priority, b.body
        from unnest(bodies) with ordinality as b (body, ordinality);
    else
      insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
        message_type_id, conversation_handle, conversation_group_id, priority, message_body)
      values (nextval('sb_internal.queuing_order'), sequence, clock_timestamp(), c.queue_id,
        c.message_type_id, e.peer_handle, c.conversation_group_id, c.priority, single);
    end if;
    if not (pg_try_advisory_lock(8420, c.queue_id) and pg_advisory_unlock(8420, c.queue_id)) then
      perform pg_notify('sb_queue_' || c.queue_id, '');
    end if;
    if c.has_activation_event then
      perform sb_internal._monitor_arrival(c.queue_id);
    end if;
  else
    insert into sb_internal.transmission (conversation_handle, message_sequence_number, message_type_id,
      enqueue_time, to_service_name, message_body)
    select _send.conversation_handle, sequence + b.ordinality - 1, c.message_type_id, sb_internal._now(),
           e.far_service, nullif(b.body, '')
      from unnest(coalesce(bodies, array[null::bytea])) with ordinality as b (body, ordinality);
    perform sb_internal._parked(e, c.is_waiting);
  end if;
  return true;
end
$$;
comment on function sb_internal._send(name, uuid, text, bytea[], boolean, boolean) is
  'SEND: one step for all bodies (null: one message without a body). Locks the endpoint, never the group (X-10), and waits for another SEND, MOVE or END on the conversation. Returns false, having changed nothing, when the message type has a validator function that has to run first, with the rights of the caller.';
revoke all on function sb_internal._send(name, uuid, text, bytea[], boolean, boolean) from public;
