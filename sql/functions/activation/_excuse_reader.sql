-- What counts a rollback is the transaction's id in the ring of the queue (see _poison_record). An entry that says
-- the same as the one before it is passed over, so a copy of that one makes the rollback of its owner count for nothing.
create or replace function sb_internal._excuse_reader(caller name, queue_id integer, pid integer)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  own bigint;
  position bigint;
  cell text;
  before text;
  found_own boolean := false;
begin
  perform sb_internal._require_admin(_excuse_reader.caller, 'run an activator');
  select l.transactionid::text::bigint
    into own
    from pg_locks as l
   where l.locktype = 'transactionid'
     and l.pid = _excuse_reader.pid
     and l.mode = 'ExclusiveLock'
     and l.granted
   order by age(l.transactionid) desc -- before those of its subtransactions
   limit 1;
  position := sb_internal._cell(_excuse_reader.queue_id, 'poison_position');
  if own is null or position is null then
    return false;
  end if;
  -- From the oldest on: the one after may be a copy already.
  for age in reverse 15..0 loop
    cell := 'poison_' || ((position - age) & 15);
    before := 'poison_' || ((position - age - 1) & 15);
    if sb_internal._cell(_excuse_reader.queue_id, cell) & 4294967295 = own then
      -- The oldest has nothing before it but the newest.
      perform setval(('sb_internal.queue_' || _excuse_reader.queue_id || '_' || cell)::regclass,
        case when age = 15 then 0 else coalesce(sb_internal._cell(_excuse_reader.queue_id, before), 0) end);
      found_own := true;
    end if;
  end loop;
  return found_own;
end
$$;
comment on function sb_internal._excuse_reader(name, integer, integer) is
  'An exception from poison counting, behind sb.excuse_reader.';
revoke all on function sb_internal._excuse_reader(name, integer, integer) from public;
