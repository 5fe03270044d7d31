-- Plans are made once a session, perhaps while the tables are empty, and not again at every call: see _receive.
create or replace function sb_internal._send(
  caller name,
  conversation_handle uuid,
  message_type text,
  bodies bytea[],
  is_text boolean,
  is_validated boolean default false
)
  returns sb_internal.unsettled
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
  c record;
  target sb_internal.service_status;
  created record;
  single bytea;
  quantity integer := 1;
  last_sequence bigint;
  is_waiting boolean;
  is_new boolean := false;
  target_queue integer;
  is_direct boolean;
  unsettled sb_internal.unsettled;
begin
  if _send.conversation_handle is null then
    perform sb_internal._raise('S8418');
  end if;

  if bodies is not null then
    quantity := cardinality(bodies);
    single := bodies[1];
    if quantity <> 1 or single is null then
      -- Also one body in an array that does not begin at 1.
      bodies := sb_internal._clean_bodies(bodies);
      single := bodies[1];
    else
      if octet_length(single) > 268435456 then
        perform sb_internal._raise('S8459', array[octet_length(single)::text]);
      elsif octet_length(single) = 0 then
        -- No body, zero length: all the same to the receiver (R-156).
        single := null;
      end if;
    end if;
  end if;

  -- The counter row is the conversation's lock for SEND, so that locking costs nothing of its own. A
  -- statement of its own all the same: what is looked at afterwards must be looked at after the wait.
  -- Read from its top end; when somebody else has counted on meanwhile, again.
  loop
    update sb_internal.send_counter as n
       set message_sequence_number = n.message_sequence_number + quantity
     where n.ctid = (
       select l.ctid
         from sb_internal.send_counter as l
        where l.conversation_handle = _send.conversation_handle
        order by l.conversation_handle desc, l.message_sequence_number desc
        limit 1)
    returning n.message_sequence_number, n.is_waiting into last_sequence, is_waiting;
    exit when found;
    is_waiting := false;
    -- Begun in this very transaction, which is how most dialogs start: nobody else can see it yet, there is no
    -- peer to look at, and the service that it goes to cannot be dropped (_share_names). In a subtransaction the ids
    -- differ, and it goes the long way. Or not begun, but moved: the same holds.
    with counted as (
      insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
      select b.conversation_handle, quantity - 1
        from sb_internal.endpoint as b
       where b.conversation_handle = _send.conversation_handle
         and b.xmin = pg_current_xact_id()::xid
         and b.is_initiator
         and current_setting('transaction_isolation') = 'read committed'
      returning send_counter.message_sequence_number)
    select h as endpoint, n.message_sequence_number, o.queue_owner, o.receivers, o.is_queue_enabled,
           o.is_retention_enabled, t.message_type_id, t.validation, t.is_sent_by_initiator as is_allowed,
           null::uuid as conversation_group_id, null::smallint as priority, null::text as peer_state,
           null::integer as queue_id, false as is_accepting, false as is_poison_watched, false as has_activation_event,
           exists (
             select 1
               from sb_internal.message as m
              where m.conversation_handle = h.conversation_handle
                and m.message_type_id in (1, 2)) as is_ended, null::integer as peer_service_id,
           o as own, d as target
      into c
      from counted as n
      join sb_internal.endpoint as h on h.conversation_handle = _send.conversation_handle
      join sb_internal.service_status as o on o.service_id = h.service_id
      left join sb_internal.service_status as d on d.service_name = h.far_service
      left join sb_internal.contract_message as t
        on t.service_contract_id = h.service_contract_id
       and t.message_type_name = _send.message_type;
    is_new := found;
    last_sequence := case
      when is_new then c.message_sequence_number
      else sb_internal._first_send(_send.conversation_handle, quantity)
    end;
    exit when last_sequence is not null;
  end loop;

  -- The common case in one statement, which says again what the rest of this function says step by step:
  -- one message for a queue that is on, with nothing to validate, retain or report.
  if last_sequence > 0 and quantity = 1 and not is_waiting then
    insert into sb_internal.message as n (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body)
    select nextval('sb_internal.queuing_order'), last_sequence, clock_timestamp(), d.queue_id,
           t.message_type_id, h.peer_handle, p.conversation_group_id, p.priority, single
      from sb_internal.endpoint as h
      join sb_internal.service_status as o on o.service_id = h.service_id
      join sb_internal.contract_message as t
        on t.service_contract_id = h.service_contract_id
       and t.message_type_name = _send.message_type
      join sb_internal.endpoint as p on p.conversation_handle = h.peer_handle
      join sb_internal.service_status as d on d.service_id = p.service_id
     where h.conversation_handle = _send.conversation_handle
       and h.state = 'CO'
       and (h.lifetime is null or h.lifetime > clock_timestamp())
       and (_send.caller = o.queue_owner or _send.caller = any (o.receivers)
         or sb_internal._may(_send.caller, o.queue_owner, o.receivers))
       and not o.is_retention_enabled
       and case when h.is_initiator then t.is_sent_by_initiator else t.is_sent_by_target end
       and (t.validation = 'NONE' or _send.is_validated)
       and current_setting('transaction_isolation') = 'read committed'
       and p.state <> 'DO'
       and d.is_accepting
       and not d.has_activation_event
       and (not d.is_poison_watched
         or pg_sequence_last_value(('sb_internal.queue_' || d.queue_id || '_poison_alarm')::regclass)
           is distinct from 1)
       and not exists (
         select 1
           from sb_internal.message as m
          where m.conversation_handle = h.conversation_handle
            and m.message_type_id in (1, 2))
    returning n.queue_id
      into target_queue;
    if found then
      -- As _wake, on the hot path.
      if not (pg_try_advisory_lock(8420, target_queue) and pg_advisory_unlock(8420, target_queue)) then
        perform pg_notify('sb_queue_' || target_queue, '');
      end if;
      return null;
    end if;
  end if;

  -- All that SEND has to know, one index probe each. Touching message here also holds off
  -- alter_service, which moves messages to another queue, until this transaction has ended.
  if not is_new then
    select h as endpoint, o.queue_owner, o.receivers, o.is_queue_enabled, o.is_retention_enabled,
           t.message_type_id, t.validation,
           case when h.is_initiator then t.is_sent_by_initiator else t.is_sent_by_target end as is_allowed,
           p.conversation_group_id, p.priority, p.state as peer_state,
           d.queue_id, d.is_accepting, d.is_poison_watched, d.has_activation_event,
           exists (
             select 1
               from sb_internal.message as m
              where m.conversation_handle = h.conversation_handle
                and m.message_type_id in (1, 2)) as is_ended, p.service_id as peer_service_id,
           o as own, null::sb_internal.service_status as target
      into c
      from sb_internal.endpoint as h
      join sb_internal.service_status as o on o.service_id = h.service_id
      left join sb_internal.contract_message as t
        on t.service_contract_id = h.service_contract_id
       and t.message_type_name = _send.message_type
      left join sb_internal.endpoint as p on p.conversation_handle = h.peer_handle
      left join sb_internal.service_status as d on d.service_id = p.service_id
     where h.conversation_handle = _send.conversation_handle;
  end if;
  e := c.endpoint;

  if _send.caller <> c.queue_owner and not (_send.caller = any (c.receivers))
    and not sb_internal._may(_send.caller, c.queue_owner, c.receivers)
  then
    perform sb_internal._raise('42501', array[_send.caller::text, 'send on this conversation'],
      'conversation_handle=' || _send.conversation_handle);
  end if;
  if e.state <> 'CO' or c.is_ended or e.lifetime <= clock_timestamp() then
    perform sb_internal._raise('S8429', array[_send.conversation_handle::text,
      sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle)]);
  end if;
  if c.is_allowed is not true then
    perform sb_internal._refuse_message_type(_send.message_type, e.service_contract_id, e.is_initiator);
  end if;
  if c.is_retention_enabled and not c.is_queue_enabled then
    perform sb_internal._raise('S9618', array[q.name])
       from sb_internal.service as s
       join sb_internal.queue as q on q.queue_id = s.queue_id
      where s.service_id = e.service_id;
  end if;

  if c.validation <> 'NONE' and not _send.is_validated then
    if exists (
      select 1
        from unnest(coalesce(bodies, array[null::bytea])) as b (body)
       where not sb_internal._is_valid_body(c.message_type_id, c.validation, nullif(b.body, ''), _send.is_text))
    then
      perform sb_internal._invalid_body(e, _send.message_type, c.validation);
      quantity := 0;
    end if;
    -- A validator function runs in the caller's wrapper, with the caller's rights, and comes back.
    select array[_send.conversation_handle], t.name, bodies, _send.is_text, t.validator, t.validation
      into unsettled
      from sb_internal.message_type as t
     where t.message_type_id = c.message_type_id
       and t.validator is not null;
    if quantity = 0 or found and bodies is not null then
      -- Nothing is sent: no number is used.
      update sb_internal.send_counter as n
         set message_sequence_number = n.message_sequence_number - coalesce(cardinality(bodies), 1)
       where n.conversation_handle = _send.conversation_handle
         and n.message_sequence_number = last_sequence;
      return case when quantity > 0 then unsettled end;
    end if;
  end if;
  if quantity = 0 then
    return null;
  end if;

  -- Where to: straight into the peer's queue when that is there and on and nothing is ahead of us,
  -- else into the transmission queue.
  is_direct := c.is_accepting and not is_waiting;
  if c.queue_id is null and not is_waiting then
    if last_sequence >= quantity or not e.is_initiator then
      -- The peer was there and is gone without a word: cleaned up (R-227).
      perform sb_internal._error_endpoint(e.conversation_handle, -8462,
        'The remote conversation endpoint has been closed.');
      return null;
    end if;
    -- An assignment: a function in FROM costs as much again as this one.
    target := case when is_new then c.target else sb_internal._find_target(e.far_service) end;
    created := sb_internal._create_target(e, c.own, target);
    if created.outcome = 'error' then
      return null;
    end if;
    is_direct := created.outcome = 'created';
    c.conversation_group_id := e.peer_handle;
    c.priority := created.priority;
    c.queue_id := target.queue_id;
    c.has_activation_event := target.has_activation_event;
  elsif is_direct and c.is_poison_watched
    and pg_sequence_last_value(('sb_internal.queue_' || c.queue_id || '_poison_alarm')::regclass) = 1
    and sb_internal._poison_limit_reached(c.queue_id)
  then
    perform sb_internal._poison_disable(c.queue_id);
    is_direct := false;
  end if;

  if c.is_retention_enabled then
    perform sb_internal._retain_sent(e, c.message_type_id, last_sequence - quantity + 1,
      coalesce(bodies, array[null::bytea]));
  end if;

  if not is_direct then
    insert into sb_internal.transmission (conversation_handle, message_sequence_number, message_type_id,
      enqueue_time, to_service_name, message_body)
    select _send.conversation_handle, last_sequence - quantity + b.ordinality, c.message_type_id, clock_timestamp(),
           e.far_service, nullif(b.body, '')
      from unnest(coalesce(bodies, array[null::bytea])) with ordinality as b (body, ordinality);
    perform sb_internal._parked(e, is_waiting);
    return null;
  end if;
  perform sb_internal._hold_service(c.peer_service_id);
  if c.peer_state = 'DO' then
    -- The peer has ended; its EndDialog has not arrived here yet. What it gets is discarded (R-220).
    return null;
  end if;
  if quantity = 1 then
    insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body)
    values (nextval('sb_internal.queuing_order'), last_sequence, clock_timestamp(), c.queue_id,
      c.message_type_id, e.peer_handle, c.conversation_group_id, c.priority, single);
  else
    insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body)
    select nextval('sb_internal.queuing_order'), last_sequence - quantity + b.ordinality, clock_timestamp(), c.queue_id,
           c.message_type_id, e.peer_handle, c.conversation_group_id, c.priority, b.body
      from unnest(bodies) with ordinality as b (body, ordinality);
  end if;
  -- As _wake, on the hot path.
  if not (pg_try_advisory_lock(8420, c.queue_id) and pg_advisory_unlock(8420, c.queue_id)) then
    perform pg_notify('sb_queue_' || c.queue_id, '');
  end if;
  if c.has_activation_event then
    perform sb_internal._monitor_arrival(c.queue_id);
  end if;
  return null;
end
$$;
comment on function sb_internal._send(name, uuid, text, bytea[], boolean, boolean) is
  'SEND: one step for all bodies (null: one message without a body). Locks the counter of the endpoint, never the group (X-10), and waits for another SEND, MOVE or END on the conversation. Returns null, or, having changed nothing, what the validator function of the message type has to settle first, with the rights of the caller.';
revoke all on function sb_internal._send(name, uuid, text, bytea[], boolean, boolean) from public;
