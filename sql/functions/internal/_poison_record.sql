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
  is_usual boolean;
  is_close boolean;
begin
  if position is not null then
    previous := coalesce(pg_sequence_last_value((cell || (position & 15))::regclass), 0) & 4294967295;
    if previous = own & 4294967295 then
      return;
    end if;
    previous := (own & ~4294967295) | previous;
    if previous > own then
      previous := previous - 4294967296;
    end if;
  end if;
  -- Mostly the one before has committed and nothing is the matter.
  is_usual := not alarm and previous >= 3 and coalesce(pg_xact_status(previous::text::xid8) = 'committed', false);
  if not is_usual then
    rollbacks := sb_internal._poison_count(_poison_record.queue_id);
  end if;
  position := nextval((cell || 'position')::regclass);
  perform setval((cell || (position & 15))::regclass, (rollbacks::bigint << 32) | (own & 4294967295));
  if is_usual then
    return;
  end if;

  -- This one counts, too, if it rolls back. It is written down first: of several at the same time, the last
  -- one sees the others.
  select sb_internal._poison_count(_poison_record.queue_id, true) >= b.poison_message_threshold
    into is_close
    from sb_internal.broker as b
   where b.singleton;
  alarm := coalesce(pg_sequence_last_value((cell || 'alarm')::regclass), 0) = 1;
  if alarm <> is_close then
    perform setval((cell || 'alarm')::regclass, is_close::integer);
    -- From now on no receive may take the short way, which does not look at the alarm.
    perform setval(('sb_internal.queue_' || _poison_record.queue_id || '_search')::regclass, 0);
  end if;
end
$$;
comment on function sb_internal._poison_record(integer) is
  'Notes that this transaction received from the queue, with the count of rollbacks before it, and raises or lowers the alarm: raised, one more rollback may reach the limit.';
revoke all on function sb_internal._poison_record(integer) from public;
