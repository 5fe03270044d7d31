create or replace function sb_internal._poison_record(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  cell constant text := 'sb_internal.queue_' || _poison_record.queue_id || '_poison_';
  own constant bigint := pg_current_xact_id()::text::bigint;
  position bigint := pg_sequence_last_value((cell || 'position')::regclass);
  alarm boolean := coalesce(pg_sequence_last_value((cell || 'alarm')::regclass), 0) = 1;
  previous bigint := 0::bigint;
  rollbacks integer := 0;
  threshold integer;
begin
  if position is not null then
    previous := pg_sequence_last_value((cell || (position & 15))::regclass) & 4294967295;
    if previous = own & 4294967295 then
      return;
    end if;
    previous := (own & ~4294967295) | previous;
    if previous > own then
      previous := previous - 4294967296;
    end if;
  end if;
  -- Mostly the one before has committed and nothing is the matter.
  if alarm or previous < 3 or pg_xact_status(previous::text::xid8) is distinct from 'committed' then
    select b.poison_message_threshold
      into threshold
      from sb_internal.broker as b
     where b.singleton;
    rollbacks := sb_internal._poison_count(_poison_record.queue_id, true);
    if alarm <> (rollbacks + 1 >= threshold) then
      perform setval((cell || 'alarm')::regclass, (rollbacks + 1 >= threshold)::integer);
      -- From now on no receive may take the short way, which does not look at the alarm.
      perform setval(('sb_internal.queue_' || _poison_record.queue_id || '_search')::regclass, 0);
    end if;
    rollbacks := sb_internal._poison_count(_poison_record.queue_id);
  end if;
  position := nextval((cell || 'position')::regclass);
  perform setval((cell || (position & 15))::regclass, (rollbacks::bigint << 32) | (own & 4294967295));
end
$$;
comment on function sb_internal._poison_record(integer) is
  'Notes that this transaction received from the queue, with the count of rollbacks before it, and raises or lowers the alarm: raised, one more rollback may reach the limit.';
revoke all on function sb_internal._poison_record(integer) from public;
