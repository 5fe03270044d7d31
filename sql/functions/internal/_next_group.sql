create or replace function sb_internal._next_group(
  queue_id integer,
  priority_levels smallint[],
  out conversation_group_id uuid,
  out conversation_handle uuid
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  started double precision := date_part('epoch', clock_timestamp());
  next_full double precision := coalesce(sb_internal._cell(_next_group.queue_id, 'search'), 0)
    / double precision '1000';
  -- More than a minute ahead is not ours: a clock was set back, or a dump restored.
  is_full boolean := started >= next_full or next_full > started + 60;
  level smallint;
  read_before bigint := pg_stat_get_xact_blocks_fetched('sb_internal.message'::regclass);
  pause double precision := 0.1::double precision;
begin
  for pass in 1..2 loop
    foreach level in array _next_group.priority_levels loop
      select l.conversation_group_id, l.conversation_handle
        into _next_group.conversation_group_id, _next_group.conversation_handle
        from sb_internal._next_group_of_level(_next_group.queue_id, level, is_full) as l;
      exit when _next_group.conversation_group_id is not null;
    end loop;

    if is_full and coalesce(sb_internal._cell(_next_group.queue_id, 'poison_alarm'), 0) = 0 then
      -- Full searches bring back what a rollback left behind the hint, and look at the clock. On a bad day
      -- (an old snapshot keeps tens of thousands of dead rows) one takes long, and they are paid for out of
      -- a budget of 5 %. The day is judged by the pages read: time alone would blame a busy machine.
      if pg_stat_get_xact_blocks_fetched('sb_internal.message'::regclass) - read_before > 2000 then
        pause := least(10, greatest(pause, 20 * (date_part('epoch', clock_timestamp()) - started)));
      end if;
      perform setval(('sb_internal.queue_' || _next_group.queue_id || '_search')::regclass,
        floor((started + pause) * 1000)::bigint);  -- rounded up it would look like a bad day below
      -- Raised meanwhile: the time must stay in the past (see _poison_record).
      if sb_internal._cell(_next_group.queue_id, 'poison_alarm') = 1 then
        perform setval(('sb_internal.queue_' || _next_group.queue_id || '_search')::regclass, 0);
      end if;
    end if;
    exit when _next_group.conversation_group_id is not null or is_full;

    -- Nothing from the hint on. "Empty" must be true, so look everywhere, unless that is the bad day.
    exit when next_full > started + 0.1;
    is_full := true;
  end loop;
end
$$;
comment on function sb_internal._next_group(integer, smallint[]) is
  'Finds a group with something to receive that nobody else holds, and locks it: the highest priority first, then about the oldest message. Never waits. Also returns the conversation through which it was found. Its cost does not depend on the backlog.';
revoke all on function sb_internal._next_group(integer, smallint[]) from public;
