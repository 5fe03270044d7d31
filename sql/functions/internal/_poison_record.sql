create or replace function sb_internal._poison_record(queue_id integer, is_alarm_off boolean default false)
  returns boolean
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
  previous bigint;
  rollbacks integer := 0;
  alarm bigint := 0::bigint;
  is_usual boolean;
  is_close boolean;
begin
  -- How many transactions ago, since an entry has only the low half of an id.
  previous := own - ((own - pg_sequence_last_value((cell || (position & 15))::regclass)) & 4294967295);
  if previous = own then
    return _poison_record.is_alarm_off;
  end if;
  if not _poison_record.is_alarm_off then
    alarm := coalesce(pg_sequence_last_value((cell || 'alarm')::regclass), 0);
  end if;
  -- Mostly the one before has committed and nothing is the matter.
  is_usual := alarm = 0 and previous >= 3 and pg_xact_status(previous::text::xid8) = 'committed';
  if is_usual is not true then
    rollbacks := sb_internal._poison_count(_poison_record.queue_id);
  end if;
  position := nextval((cell || 'position')::regclass);
  position := setval((cell || (position & 15))::regclass, (rollbacks::bigint << 32) | (own & 4294967295));
  if is_usual then
    return true;
  end if;

  -- This one counts, too, if it rolls back. It is written down first: of several at the same time, the last
  -- one sees the others.
  select sb_internal._poison_count(_poison_record.queue_id, true) >= b.poison_message_threshold
    into is_close
    from sb_internal.broker as b
   where b.singleton;
  alarm := coalesce(pg_sequence_last_value((cell || 'alarm')::regclass), 0);
  if alarm <> is_close::integer then
    perform setval((cell || 'alarm')::regclass, is_close::integer);
    -- From now on no receive may take the short way, which does not look at the alarm.
    perform setval(('sb_internal.queue_' || _poison_record.queue_id || '_search')::regclass, 0);
  end if;
  return not is_close;
end
$$;
comment on function sb_internal._poison_record(integer, boolean) is
  'Notes that this transaction received from the queue, with the count of rollbacks before it, and raises or lowers the alarm: raised, one more rollback may reach the limit. is_alarm_off: the caller has seen so. Returns whether it is known to be off now.';
revoke all on function sb_internal._poison_record(integer, boolean) from public;
