create or replace function sb_internal._poison_record(queue_id integer, rollbacks integer)
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
begin
  if position is not null
    and sb_internal._cell(_poison_record.queue_id, 'poison_' || (position & 15)) & 4294967295 = own
  then
    return;
  end if;
  position := nextval(('sb_internal.queue_' || _poison_record.queue_id || '_poison_position')::regclass);
  perform setval(('sb_internal.queue_' || _poison_record.queue_id || '_poison_' || (position & 15))::regclass,
    (_poison_record.rollbacks::bigint << 32) | own);
end
$$;
comment on function sb_internal._poison_record(integer, integer) is
  'Notes that this transaction received from the queue, with the count of rollbacks before it.';
revoke all on function sb_internal._poison_record(integer, integer) from public;
