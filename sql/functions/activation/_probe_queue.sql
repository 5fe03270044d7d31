create or replace function sb_internal._probe_queue(
  caller name,
  queue_id integer,
  out head bigint,
  out receives bigint,
  out waited double precision
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  levels smallint[];
  is_counting boolean;
  conversation uuid;
  first_order bigint;
  enqueued_at timestamptz;
  due_at timestamptz;
begin
  perform sb_internal._require_admin(_probe_queue.caller, 'run an activator');
  if not coalesce(sb_internal._queue_is_on(_probe_queue.queue_id), false) then
    return;
  end if;
  select b.priority_levels, q.is_poison_message_handling_enabled
    into levels, is_counting
    from sb_internal.broker as b
    join sb_internal.queue as q on q.queue_id = _probe_queue.queue_id
   where b.singleton;
  if is_counting then
    receives := coalesce(sb_internal._cell(_probe_queue.queue_id, 'poison_position'), 0);
  end if;
  -- What could be received is what could be locked; the subtransaction gives the lock back.
  begin
    select g.conversation_handle
      into conversation
      from sb_internal._next_group(_probe_queue.queue_id, levels) as g;
    if conversation is null then
      return;
    end if;
    select m.queuing_order, m.message_enqueue_time
      into first_order, enqueued_at
      from sb_internal.message as m
     where m.conversation_handle = conversation
     order by m.message_sequence_number
     limit 1;
    select min(d.due_at)
      into due_at
      from sb_internal.due as d
     where d.conversation_handle = conversation
       and d.due_at <= sb_internal._now();
    head := hashtextextended(concat_ws(' ', conversation, coalesce(first_order, 0), due_at), 0);
    waited := extract(epoch from sb_internal._now() - least(enqueued_at, due_at))::double precision;
    perform sb_internal._raise('SB003');
  exception
    when sqlstate 'SB003' then
      null;
  end;
end
$$;
comment on function sb_internal._probe_queue(name, integer) is
  'A look at what the next receive would get, behind sb.probe_queue.';
revoke all on function sb_internal._probe_queue(name, integer) from public;
