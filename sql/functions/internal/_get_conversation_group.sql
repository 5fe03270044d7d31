create or replace function sb_internal._get_conversation_group(
  caller name,
  queue_name text,
  timeout interval
)
  returns uuid
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
  deadline timestamptz;
  nap double precision := 0.005::double precision;
  held uuid;
begin
  select o.queue_id
    into q
    from sb_internal.queue as o
   where o.name = _get_conversation_group.queue_name;
  if not found then
    perform sb_internal._require_name(_get_conversation_group.queue_name, 'queue', 128);
    perform sb_internal._raise('S0208', array[_get_conversation_group.queue_name]);
  end if;
  deadline := case
    when _get_conversation_group.timeout < interval '0'
      or _get_conversation_group.timeout > interval '1000 years'
    then 'infinity'
    when _get_conversation_group.timeout > interval '0' then sb_internal._now() + _get_conversation_group.timeout
  end;
  loop
    select o.queue_id, o.name, o.owner, o.receivers, o.is_enabled, o.is_poison_message_handling_enabled,
           o.has_activation_event, b.priority_levels
      into q
      from sb_internal.queue as o
     cross join sb_internal.broker as b
     where o.queue_id = q.queue_id
       and b.singleton;
    if not found then
      perform sb_internal._raise('S0208', array[_get_conversation_group.queue_name]);
    end if;
    if not sb_internal._may(_get_conversation_group.caller, q.owner, q.receivers) then
      perform sb_internal._raise('42501', array[_get_conversation_group.caller::text, 'receive from queue ' || q.name]);
    end if;
    if not q.is_enabled then
      perform sb_internal._raise('S9617', array[q.name], sb_internal._stopped_by(q.queue_id));
    end if;
    if q.is_poison_message_handling_enabled and sb_internal._poison_limit_reached(q.queue_id) then
      perform sb_internal._poison_disable(q.queue_id);
      return null;
    end if;
    select g.conversation_group_id
      into held
      from sb_internal._next_group(q.queue_id, q.priority_levels) as g;
    exit when held is not null or deadline is null or sb_internal._now() >= deadline;
    perform pg_sleep(case when deadline = 'infinity' then nap
      else greatest(0, least(nap, extract(epoch from deadline - sb_internal._now()))) end);
    nap := least(nap * 1.5, 0.25);
  end loop;
  if q.has_activation_event then
    perform sb_internal._monitor_receive(q.queue_id, held is not null);
  end if;
  return held;
end
$$;
comment on function sb_internal._get_conversation_group(name, text, interval) is
  'GET CONVERSATION GROUP behind sb.get_conversation_group.';
revoke all on function sb_internal._get_conversation_group(name, text, interval) from public;
