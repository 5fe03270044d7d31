-- Plans are made once a session, perhaps while the queue is empty: every statement here and in what it
-- calls probes an index, and the settings keep the planner from anything else. "is not distinct from" keeps
-- it from the index of groups where the handle says which row: by the plan both are one. jit: what the settings
-- make expensive on paper would be compiled, for longer than it runs.
create or replace function sb_internal._receive(
  caller name,
  queue_name text,
  max_messages integer,
  for_conversation uuid,
  for_group uuid,
  timeout interval
)
  returns table (status smallint, priority smallint, queuing_order bigint, conversation_group_id uuid,
    conversation_handle uuid, message_sequence_number bigint, service_name text, service_id integer,
    service_contract_name text, service_contract_id integer, message_type_name text, message_type_id integer,
    validation text, message_body bytea, message_enqueue_time timestamptz)
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
  q record;
  e record;
  is_common boolean;
  hint bigint;
  found_at bigint;
  lowest bigint;
  remaining bigint := coalesce(_receive.max_messages, 9223372036854775807);
  deadline timestamptz;
  nap double precision := 0.005::double precision;
  held uuid;
  conversation uuid;
  returned bigint := 0::bigint;
  retries integer := 0;
begin
  if _receive.for_conversation is not null and _receive.for_group is not null then
    perform sb_internal._raise('22023', array['for_conversation and for_group exclude each other']);
  end if;
  if remaining <= 0 then
    perform sb_internal._raise('22023', array['max_messages must be greater than zero']);
  end if;
  select o.queue_id, o.name, o.owner, o.receivers, o.is_enabled, o.is_retention_enabled,
         o.is_poison_message_handling_enabled, o.has_activation_event, b.priority_levels, b.system_names
    into q
    from sb_internal.queue as o
   cross join sb_internal.broker as b
   where o.name = _receive.queue_name
     and b.singleton;
  if not found then
    perform sb_internal._require_name(_receive.queue_name, 'queue', 128);
    perform sb_internal._raise('S0208', array[_receive.queue_name]);
  end if;
  deadline := case
    when _receive.timeout is null then null
    when _receive.timeout < interval '0' or _receive.timeout > interval '1000 years' then 'infinity'
    when _receive.timeout > interval '0' then clock_timestamp() + _receive.timeout
  end;

  loop
    if _receive.caller <> q.owner and not (_receive.caller = any (q.receivers))
      and not sb_internal._may(_receive.caller, q.owner, q.receivers)
    then
      perform sb_internal._raise('42501', array[_receive.caller::text, 'receive from queue ' || q.name]);
    end if;
    if not q.is_enabled then
      perform sb_internal._raise('S9617', array[q.name], sb_internal._stopped_by(q.queue_id));
    end if;
    -- While the poison alarm is raised the time of the next full search stays in the past (see
    -- _poison_record), so that the common case asks one question instead of two.
    -- A time far ahead is a clock that was set back, or a restored one.
    is_common := pg_sequence_last_value(('sb_internal.queue_' || q.queue_id || '_search')::regclass)
      - date_part('epoch', clock_timestamp()) * 1000 between 0 and 60000;
    if is_common is not true and q.is_poison_message_handling_enabled
      and sb_internal._poison_limit_reached(q.queue_id)
    then
      perform sb_internal._poison_disable(q.queue_id);
      return;
    end if;

    held := null;
    if _receive.for_conversation is not null or _receive.for_group is not null then
      held := sb_internal._lock_named_group(q.queue_id, _receive.for_conversation, _receive.for_group,
        _receive.timeout, deadline);
      -- It may have waited long, and the queue may be another by now.
      q.is_retention_enabled := (
        select o.is_retention_enabled
          from sb_internal.queue as o
         where o.queue_id = q.queue_id);
      conversation := _receive.for_conversation;
    else
      if is_common and remaining = 1 and cardinality(q.priority_levels) = 1 and not q.is_retention_enabled then
        -- The common case in one go: one message wanted, of the first group from the start hint on that nobody
        -- holds. It says what _claim and _take say; everything unusual is left to them.
        hint := coalesce(pg_sequence_last_value(
          ('sb_internal.queue_' || q.queue_id || '_hint_' || q.priority_levels[1])::regclass), 0);
        found_at := hint - 1;
        for attempt in 1..3 loop
          begin
            -- lateral, so that whatever the plan each message asks for its own group only.
            select g.conversation_group_id, m.conversation_handle, m.queuing_order, m.message_sequence_number
              into held, conversation, found_at, lowest
              from (
                select n.conversation_group_id, n.conversation_handle, n.queuing_order, n.message_sequence_number
                  from sb_internal.message as n
                 where n.queue_id = q.queue_id
                   and n.priority = q.priority_levels[1]
                   and n.queuing_order > found_at
                 order by n.queuing_order
                 limit 100) as m
             cross join lateral (
                select c.conversation_group_id
                  from sb.conversation_group as c
                 where c.conversation_group_id = m.conversation_group_id
                   and not exists (
                     select 1
                       from sb_internal.group_backoff as b
                      where b.conversation_group_id = m.conversation_group_id
                        and b.not_before > clock_timestamp())
                 limit 1
                   for no key update skip locked) as g
             limit 1;
            exit when not found;
            lowest := case
              when lowest < 64 then -1
              else coalesce((
                select c.message_sequence_number
                  from sb_internal.receive_cursor as c
                 where c.conversation_handle = conversation
                 order by c.conversation_handle desc, c.message_sequence_number desc
                 limit 1), -1)
            end;
            select o.priority, o.lifetime, s.service_id, s.name as service_name, o.service_contract_id,
                   k.name as contract_name, t.message_type_id, t.name as type_name,
                   case t.validation when 'NONE' then 'N' when 'EMPTY' then 'E' when 'WELL_FORMED_XML' then 'X'
                     when 'VALID_XML' then 'X' else 'J' end as validation,
                   m.ctid, m.queuing_order, m.message_sequence_number, m.message_body, m.message_enqueue_time,
                   exists (
                     select 1
                       from sb_internal.due as d
                      where d.conversation_handle = conversation
                        and d.due_at <= clock_timestamp()) as is_due,
                   exists (
                     select 1
                       from sb_internal.message as n
                      where n.conversation_handle = conversation
                        and n.message_type_id in (1, 2)) as is_unusual
              into e
              from sb_internal.endpoint as o
              join sb_internal.service as s on s.service_id = o.service_id
              left join sb_internal.contract as k on k.service_contract_id = o.service_contract_id
             cross join lateral (
               select n.ctid, n.queuing_order, n.message_sequence_number, n.message_type_id, n.message_body,
                      n.message_enqueue_time
                 from sb_internal.message as n
                where n.conversation_handle = o.conversation_handle
                  and n.message_sequence_number >= lowest
                order by n.message_sequence_number
                limit 1) as m
              join sb_internal.message_type as t on t.message_type_id = m.message_type_id
             where o.conversation_handle = conversation
               and o.conversation_group_id is not distinct from held
               and o.state <> 'DO';
            if not found or e.is_due then
              -- A rival has taken it just now, or the group is another one by now; or a timer, whose turn _next_group
              -- knows.
              perform sb_internal._raise('SB003');
            end if;
            is_common := not e.is_unusual and q.system_names = 'documented';
            exit;
          exception
            when sqlstate 'SB003' then
              held := null;
          end;
        end loop;
        if held is not null and is_common then
          delete from sb_internal.message as n
           where n.ctid = e.ctid;
          if e.message_sequence_number - greatest(lowest, 0) >= 64 then
            perform sb_internal._advance_cursor(conversation, lowest, e.message_sequence_number + 1);
          end if;
          if q.is_poison_message_handling_enabled then
            -- Assigned: perform would be a statement more.
            is_common := sb_internal._poison_record(q.queue_id, true);
          end if;
          if found_at > hint + 128 then
            perform sb_internal._advance_hint(q.queue_id, q.priority_levels[1], found_at);
          end if;
          if q.has_activation_event then
            perform sb_internal._monitor_receive(q.queue_id, true);
          end if;
          status := 0;
          priority := e.priority;
          queuing_order := e.queuing_order;
          conversation_group_id := held;
          conversation_handle := conversation;
          message_sequence_number := e.message_sequence_number;
          service_name := e.service_name;
          service_id := e.service_id;
          service_contract_name := e.contract_name;
          service_contract_id := e.service_contract_id;
          message_type_name := e.type_name;
          message_type_id := e.message_type_id;
          validation := e.validation;
          message_body := e.message_body;
          message_enqueue_time := e.message_enqueue_time;
          return next;
          return;
        end if;
      end if;
      if held is null then
        select g.conversation_group_id, g.conversation_handle
          into held, conversation
          from sb_internal._next_group(q.queue_id, q.priority_levels) as g;
      end if;
    end if;

    if held is not null then
      if conversation is not null and (cardinality(q.priority_levels) = 1 or _receive.for_conversation is not null) then
        return query
          select t.*
            from sb_internal._take(conversation, remaining, q.is_retention_enabled) as t;
        get diagnostics returned = row_count;
        remaining := remaining - returned;
      end if;
      if remaining > 0 and _receive.for_conversation is null then
        return query
          select t.*
            from sb_internal._take_group(q.queue_id, held, q.priority_levels, remaining,
              q.is_retention_enabled, returned) as t;
        get diagnostics remaining = row_count;
        returned := returned + remaining;
      end if;
      if returned > 0 then
        if q.is_poison_message_handling_enabled then
          is_common := sb_internal._poison_record(q.queue_id);
        end if;
        if q.has_activation_event then
          perform sb_internal._monitor_receive(q.queue_id, true);
        end if;
        return;
      end if;
      remaining := coalesce(_receive.max_messages, 9223372036854775807);
      -- What was due had become void (the lifetime of a conversation that has ended): look further.
      retries := retries + 1;
      continue when retries <= 16 and _receive.for_conversation is null and _receive.for_group is null;
    end if;

    exit when deadline is null or clock_timestamp() >= deadline;
    -- A client that can LISTEN does not come here. The nap grows: no busy loop, no long delay.
    perform pg_sleep(case when deadline = 'infinity' then nap
      else greatest(0, least(nap, extract(epoch from deadline - clock_timestamp()))) end);
    nap := least(nap * 1.5, 0.25);

    -- By id: a queue dropped and made again under the same name is another queue.
    select o.queue_id, o.name, o.owner, o.receivers, o.is_enabled, o.is_retention_enabled,
           o.is_poison_message_handling_enabled, o.has_activation_event, b.priority_levels, b.system_names
      into q
      from sb_internal.queue as o
     cross join sb_internal.broker as b
     where o.queue_id = q.queue_id
       and b.singleton;
    if not found then
      perform sb_internal._raise('S0208', array[_receive.queue_name]);
    end if;
  end loop;
  if q.has_activation_event then
    perform sb_internal._monitor_receive(q.queue_id, false);
  end if;
end
$$;
comment on function sb_internal._receive(name, text, integer, uuid, uuid, interval) is
  'RECEIVE behind sb.receive.';
revoke all on function sb_internal._receive(name, text, integer, uuid, uuid, interval) from public;
