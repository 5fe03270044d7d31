-- Plans that avoid sequential scans at all costs are taken for expensive: compiling them would take longer
-- than running them, hence jit off.
create or replace function sb_internal._queue_statistics(caller name)
  returns table (queue_name text, queue_id integer, is_on boolean, ready_messages bigint, is_estimate boolean,
    blocked_groups bigint, oldest_ready_age interval, transmission_backlog bigint, consecutive_rollbacks integer,
    last_receive_time timestamptz, last_empty_rowset_time timestamptz, last_activated_time timestamptz)
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
as $$
declare
  most constant integer := 10000;
  visible integer[] := sb_internal._visible(_queue_statistics.caller, 'queue');
  levels smallint[] := (select b.priority_levels from sb_internal.broker as b where b.singleton);
  oldest timestamptz;
  plan json;
begin
  for queue_name, queue_id, last_empty_rowset_time, last_activated_time in
    select q.name, q.queue_id, m.last_empty_rowset_time, m.last_activated_time
      from sb_internal.queue as q
      left join sb_internal.queue_monitor as m on m.queue_id = q.queue_id
     where q.queue_id = any (visible)
     order by q.name
  loop
    -- A receive notes when the next full search may be, a tenth of a second or more ahead.
    last_receive_time := (
      select least(sb_internal._now(), to_timestamp(c.looked::double precision / 1000 - 0.1))
        from sb_internal._cell(queue_id, 'search') as c (looked)
       where c.looked > 0);
    is_on := sb_internal._queue_is_on(queue_id);
    consecutive_rollbacks := sb_internal._poison_count(queue_id);

    -- Count as far as it is cheap; beyond, the planner knows well enough.
    select count(*)
      into ready_messages
      from (
        select 1
          from sb_internal.message as m
         where m.queue_id = _queue_statistics.queue_id
         limit most
      ) as c;
    is_estimate := ready_messages = most;
    if is_estimate then
      execute 'explain (format json) select 1 from sb_internal.message as m where m.queue_id = ' || queue_id into plan;
      ready_messages := greatest(most, (plan #>> '{0,Plan,Plan Rows}')::numeric::bigint);
    end if;

    select min(f.message_enqueue_time)
      into oldest
      from unnest(levels) as p (level)
     cross join lateral (
       select m.message_enqueue_time
         from sb_internal.message as m
        where m.queue_id = _queue_statistics.queue_id
          and m.priority = p.level
        order by m.queuing_order
        limit 1
     ) as f;
    oldest_ready_age := sb_internal._now() - oldest;

    -- Sub-selects and limits leave the planner no way to start from the big tables.
    select count(*)
      into blocked_groups
      from sb_internal.group_backoff as b
     where b.not_before > sb_internal._now()
       and (select s.queue_id
              from sb.conversation_group as g
              join sb_internal.service as s on s.service_id = g.service_id
             where g.conversation_group_id = b.conversation_group_id) = _queue_statistics.queue_id;
    select count(*)
      into transmission_backlog
      from (
        select 1
          from sb_internal.service as s
         cross join lateral (
           select 1
             from sb_internal.transmission as t
            where t.to_service_name = s.name
            limit most
         ) as t
         where s.queue_id = _queue_statistics.queue_id
         limit most
      ) as c;
    return next;
  end loop;
end
$$;
comment on function sb_internal._queue_statistics(name) is
  'Behind view sb.queue_statistics: looks at no more than 10,000 messages of a queue.';
revoke all on function sb_internal._queue_statistics(name) from public;
