-- A rolled-back transaction leaves no row, but its id in a sequence: the last 16 receiving transactions
-- of a queue form a ring. One slot is not enough: with several readers the newest is mostly still running.
create or replace function sb_internal._poison_count(queue_id integer, with_running boolean default false)
  returns integer
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  position bigint := sb_internal._cell(_poison_count.queue_id, 'poison_position');
  horizon bigint;
  entry bigint;
  receiver bigint;
  counted bigint[] := '{}'::bigint[];
  rollbacks integer := 0;
  status text;
begin
  if position is null then
    return 0;
  end if;
  for age in 0..15 loop
    entry := sb_internal._cell(_poison_count.queue_id, 'poison_' || ((position - age) & 15));
    exit when entry is null or entry = 0;

    -- The entry has the low half of a transaction id, and what it means is the id nearest to the horizon. Those
    -- still running may lie beyond it. So may an id from another cluster, asking for whose status raises.
    horizon := coalesce(horizon, pg_snapshot_xmax(pg_current_snapshot())::text::bigint);
    receiver := horizon + ((entry - horizon + 2147483648) & 4294967295) - 2147483648;
    exit when receiver < 3;
    begin
      status := pg_xact_status(receiver::text::xid8);
    exception
      when invalid_parameter_value then
        perform sb_internal._poison_reset(_poison_count.queue_id);
        return 0;
    end;

    exit when status = 'committed';
    continue when receiver = any (counted)
      or status is distinct from 'aborted' and not (status = 'in progress' and _poison_count.with_running);

    if counted = '{}' and not pg_is_in_recovery()
      and sb_internal._cell(_poison_count.queue_id, 'stamp') is distinct from sb_internal._stamp()
    then
      -- The ids were restored from a dump, or a crash or failover lies between.
      perform sb_internal._poison_reset(_poison_count.queue_id);
      return 0;
    end if;
    counted := counted || receiver;
    -- A ring full of rollbacks says how many came before its oldest entry.
    rollbacks := cardinality(counted) + case when age = 15 then (entry >> 32)::integer else 0 end;
  end loop;
  return rollbacks;
end
$$;
comment on function sb_internal._poison_count(integer, boolean) is
  'How many transactions in a row received from the queue and rolled back, newest first up to the last committed one (R-350); those still running are passed over, or counted as if they were to fail. Survives the rollbacks it counts.';
revoke all on function sb_internal._poison_count(integer, boolean) from public;
