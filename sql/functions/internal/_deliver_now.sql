create or replace function sb_internal._deliver_now(queue_id integer, service_name text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- A SEND that found the way closed before this transaction opened it may not have committed its row yet,
  -- and a later one does not see this transaction before it commits. The lock waits for the former, and makes
  -- the latter wait and look again (_parked). Before any row is locked: who waits for such a row may have
  -- put one into the transmission queue. Somebody who keeps his transaction open is waited for 5 s; his row
  -- is left to the activator or to sb.deliver.
  perform sb_internal._lock_table('sb_internal.transmission', '5 s');
  perform sb_internal._deliver(_deliver_now.queue_id, _deliver_now.service_name);
end
$$;
comment on function sb_internal._deliver_now(integer, text) is
  'Delivery by whoever has just opened a way (queue switched on, service created, broker enabled): moves on what waits, so that nothing is left behind. Messages parked meanwhile for whatever queue wait for the end of this transaction.';
revoke all on function sb_internal._deliver_now(integer, text) from public;
