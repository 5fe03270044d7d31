-- Rollbacks are only counted where, and as long as, they can be somebody's fault. A crash rolls back whoever is
-- receiving at that moment, and leaves sequences up to 32 ahead, so that the ring of a queue is turned; so does a standby
-- that takes over. What PostgreSQL forgets in both cases, but not in an orderly restart, is its statistics:
-- that of the archiver, which otherwise nobody resets, says since when it has been counting.
create or replace function sb_internal._stamp()
  returns bigint
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select (hashtextextended(concat_ws('/', c.system_identifier, d.oid, 'sb_internal.message'::regclass::oid,
              extract(epoch from a.stats_reset)), 0)
            & 9223372036854775807)
      from pg_control_system() as c
     cross join pg_stat_archiver as a
      join pg_database as d on d.datname = current_database());
end
$$;
comment on function sb_internal._stamp() is
  'Identity of this copy of the broker: cluster, database, message table, and the time since the last crash or failover. Reads the control file (some 20 µs) and a statistic: for rare paths only.';
revoke all on function sb_internal._stamp() from public;
