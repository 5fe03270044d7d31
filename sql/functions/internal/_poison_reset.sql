create or replace function sb_internal._poison_reset(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- Whoever only looks leaves it to the next receive.
  if current_setting('transaction_read_only')::boolean then
    return;
  end if;
  for slot in 0..15 loop
    perform setval(('sb_internal.queue_' || _poison_reset.queue_id || '_poison_' || slot)::regclass, 0);
  end loop;
  perform setval(('sb_internal.queue_' || _poison_reset.queue_id || '_poison_alarm')::regclass, 0);
  perform setval(('sb_internal.queue_' || _poison_reset.queue_id || '_stamp')::regclass, sb_internal._stamp());
end
$$;
comment on function sb_internal._poison_reset(integer) is
  'Forgets the rollbacks counted for a queue. Takes effect at once and survives a rollback. In a read-only transaction it does nothing.';
revoke all on function sb_internal._poison_reset(integer) from public;
