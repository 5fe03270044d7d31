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
as $$
declare
  q record;
  remaining bigint;
  deadline timestamptz;
  nap double precision := 0.005;
  held uuid;
  conversation uuid;
  returned bigint := 0;
  retries integer := 0;
begin
  if _receive.for_conversation is not null and _receive.for_group is not null then
    perform sb_internal._raise('22023', array['for_conversation and for_group exclude each other']);
  end if;
  if _receive.max_messages <= 0 then
    perform sb_internal._raise('22023', array['max_messages must be greater than zero']);
  end if;
  if _receive.queue_name is null or _receive.queue_name = '' then
    perform sb_internal._require_name(_receive.queue_name, 'queue', 128);
  end if;
  select o.queue_id
    into q
    from sb_internal.queue as o
   where o.name = _receive.queue_name;
  if not found then
    perform sb_internal._raise('S0208', array[_receive.queue_name]);
  end if;
  deadline := case
    when _receive.timeout < interval '0' then 'infinity'
    when _receive.timeout > interval '0' then sb_internal._now() + _receive.timeout
  end;

  loop
    -- By id: a queue dropped and made again under the same name is another queue.
    select o.queue_id, o.name, o.owner, o.receivers, o.is_enabled, o.is_retention_enabled,
           o.is_poison_message_handling_enabled, o.has_activation_event,
           b.priority_levels
      into q
      from sb_internal.queue as o
     cross join sb_internal.broker as b
     where o.queue_id = q.queue_id
       and b.singleton;
    if not found then
      perform sb_internal._raise('S0208', array[_receive.queue_name]);
    end if;
    if _receive.caller <> q.owner and not (_receive.caller = any (q.receivers))
      and not sb_internal._may(_receive.caller, q.owner, q.receivers)
    then
      perform sb_internal._raise('42501', array[_receive.caller::text, 'receive from queue ' || q.name]);
    end if;
    if not q.is_enabled then
      perform sb_internal._raise('S9617', array[q.name]);
    end if;
    if q.is_poison_message_handling_enabled and sb_internal._poison_limit_reached(q.queue_id) then
      perform sb_internal._poison_disable(q.queue_id);
      return;
    end if;

    if _receive.for_conversation is null and _receive.for_group is null then
      select g.conversation_group_id, g.conversation_handle
        into held, conversation
        from sb_internal._next_group(q.queue_id, q.priority_levels) as g;
    else
      held := sb_internal._lock_named_group(q.queue_id, _receive.for_conversation, _receive.for_group,
        _receive.timeout, deadline);
      conversation := _receive.for_conversation;
    end if;

    if held is not null then
      remaining := coalesce(_receive.max_messages, 9223372036854775807);
      if conversation is not null and cardinality(q.priority_levels) = 1 or _receive.for_conversation is not null then
        return query
          select t.*
            from sb_internal._take(conversation, remaining, q.is_retention_enabled) as t;
        get diagnostics returned = row_count;
        remaining := remaining - returned;
      end if;
      if remaining > 0 and _receive.for_conversation is null then
        return query
          select t.*
            from sb_internal._take_group(q.queue_id, held, q.priority_levels, conversation, remaining,
                   q.is_retention_enabled) as t;
        get diagnostics remaining = row_count;
        returned := returned + remaining;
      end if;
      if returned > 0 then
        if q.is_poison_message_handling_enabled then
          perform sb_internal._poison_record(q.queue_id);
        end if;
        if q.has_activation_event then
          perform sb_internal._monitor_receive(q.queue_id, true);
        end if;
        return;
      end if;
      -- What was due had become void (the lifetime of a conversation that has ended): look further.
      retries := retries + 1;
      continue when retries <= 16 and _receive.for_conversation is null and _receive.for_group is null;
    end if;

    exit when deadline is null or sb_internal._now() >= deadline;
    -- A client that can LISTEN does not come here. The nap grows: no busy loop, no long delay.
    perform pg_sleep(case when deadline = 'infinity' then nap
      else greatest(0, least(nap, extract(epoch from deadline - sb_internal._now()))) end);
    nap := least(nap * 1.5, 0.25);
  end loop;
  if q.has_activation_event then
    perform sb_internal._monitor_receive(q.queue_id, false);
  end if;
end
$$;
comment on function sb_internal._receive(name, text, integer, uuid, uuid, interval) is
  'RECEIVE behind sb.receive.';
revoke all on function sb_internal._receive(name, text, integer, uuid, uuid, interval) from public;
