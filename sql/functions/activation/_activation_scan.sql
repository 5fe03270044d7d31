create or replace function sb_internal._activation_scan(caller name, queue_ids integer[])
  returns table (queue_id integer, is_on boolean, has_ready boolean, due_in double precision, receives bigint)
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
  is_enabled boolean;
  is_broker_enabled boolean;
begin
  perform sb_internal._require_admin(_activation_scan.caller, 'run an activator');
  foreach queue_id in array _activation_scan.queue_ids loop
    select q.is_enabled, b.is_broker_enabled
      into is_enabled, is_broker_enabled
      from sb_internal.queue as q
      join sb_internal.broker as b on b.singleton
     where q.queue_id = _activation_scan.queue_id;
    continue when not found;

    is_on := sb_internal._queue_is_on(_activation_scan.queue_id);
    if is_enabled and not is_on then
      -- The poison limit is reached, and readers that roll back cannot write that down.
      perform sb_internal._poison_disable(_activation_scan.queue_id);
    end if;
    is_on := is_on and is_broker_enabled;
    receives := coalesce(sb_internal._cell(_activation_scan.queue_id, 'poison_position'), 0);

    select extract(epoch from min(o.due_at) - sb_internal._now())::double precision
      into due_in
      from sb_internal.broker as b
     cross join unnest(b.priority_levels) as l (priority)
     cross join lateral (
       select d.due_at
         from sb_internal.due as d
        where d.queue_id = _activation_scan.queue_id
          and d.priority = l.priority
        order by d.due_at
        limit 1) as o
     where b.singleton;
    has_ready := is_on and (
      coalesce(due_in <= 0, false)
      or exists (
        select 1
          from sb_internal.message as m
         where m.queue_id = _activation_scan.queue_id));
    return next;
  end loop;
end
$$;
comment on function sb_internal._activation_scan(name, integer[]) is
  'A look at queues, behind sb.activation_scan.';
revoke all on function sb_internal._activation_scan(name, integer[]) from public;
