create or replace function sb_internal._queue_sequences(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  cell text;
begin
  for cell in
    select 'queue_' || _queue_sequences.queue_id || '_' || c.cell
      from (
        select unnest(array['poison_position', 'poison_alarm', 'stamp', 'search'])
         union all
        select 'poison_' || g.slot
          from generate_series(0, 15) as g (slot)
         union all
        select 'hint_' || p.level
          from sb_internal.broker as b
         cross join unnest(b.priority_levels) as p (level)
         where b.singleton
      ) as c (cell)
     where to_regclass('sb_internal.queue_' || _queue_sequences.queue_id || '_' || c.cell) is null
  loop
    execute format('create sequence sb_internal.%I as bigint minvalue 0 start 0 cache 1 no cycle', cell);
  end loop;
  if sb_internal._cell(_queue_sequences.queue_id, 'stamp') is null then
    perform setval(('sb_internal.queue_' || _queue_sequences.queue_id || '_stamp')::regclass, sb_internal._stamp());
  end if;
end
$$;
comment on function sb_internal._queue_sequences(integer) is
  'Creates those of a queue''s non-transactional cells that are missing: poison ring, stamp, time of the next full search, and a search hint for each priority level. Readable as null until first written; the stamp is written.';
revoke all on function sb_internal._queue_sequences(integer) from public;
