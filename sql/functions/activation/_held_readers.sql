create or replace function sb_internal._held_readers()
  returns table (queue_id integer, slot integer)
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select ((k.key >> 15) & 2147483647)::integer, (k.key & 32767)::integer
      from pg_locks as l
     cross join lateral (select (l.classid::bigint << 32) | l.objid::bigint as key) as k
     where l.locktype = 'advisory'
       and l.objsubid = 1
       and l.database = (select d.oid from pg_database as d where d.datname = current_database())
       and l.granted
       and k.key >> 48 = 21314;
end
$$;
comment on function sb_internal._held_readers() is
  'The reader slots that are taken right now, over all activators. Reads the whole lock table: not for hot paths.';
revoke all on function sb_internal._held_readers() from public;
