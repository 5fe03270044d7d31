create or replace function sb_internal._poison_record(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  position bigint := sb_internal._cell(_poison_record.queue_id, 'poison_position');
  own bigint := pg_current_xact_id()::text::bigint & 4294967295;
  rollbacks integer;
  alarm boolean;
begin
  if position is not null
    and sb_internal._cell(_poison_record.queue_id, 'poison_' || (position & 15)) & 4294967295 = own
  then
    return;
  end if;
  rollbacks := sb_internal._poison_count(_poison_record.queue_id, true);
  alarm := rollbacks + 1 >= (
    select b.poison_message_threshold
      from sb_internal.broker as b
     where b.singleton);
  if rollbacks > 0 then
    rollbacks := sb_internal._poison_count(_poison_record.queue_id);
  end if;
  if alarm <> (coalesce(sb_internal._cell(_poison_record.queue_id, 'poison_alarm'), 0) = 1) then
    perform setval(('sb_internal.queue_' || _poison_record.queue_id || '_poison_alarm')::regclass, alarm::integer);
  end if;
  position := nextval(('sb_internal.queue_' || _poison_record.queue_id || '_poison_position')::regclass);
  perform setval(('sb_internal.queue_' || _poison_record.queue_id || '_poison_' || (position & 15))::regclass,
    (rollbacks::bigint << 32) | own);
end
$$;
comment on function sb_internal._poison_record(integer) is
  'Notes that this transaction received from the queue, with the count of rollbacks before it, and raises or lowers the alarm.';
revoke all on function sb_internal._poison_record(integer) from public;
