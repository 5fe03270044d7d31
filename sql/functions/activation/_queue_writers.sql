create or replace function sb_internal._queue_writers(caller name)
  returns text[]
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_queue_writers.caller, 'run an activator');
  return array(
    select distinct l.virtualtransaction
      from pg_locks as l
     where l.locktype = 'relation'
       and l.database = (select d.oid from pg_database as d where d.datname = current_database())
       and l.relation in ('sb_internal.message'::regclass, 'sb_internal.due'::regclass)
       and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock')
       and l.granted
       and l.pid is distinct from pg_backend_pid());
end
$$;
comment on function sb_internal._queue_writers(name) is
  'The fence of the waiting flag, behind sb.queue_writers.';
revoke all on function sb_internal._queue_writers(name) from public;
