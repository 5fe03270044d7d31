create or replace function sb_internal._drop_stale_sequences()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '50ms'
as $$
declare
  sequences text := (
    select string_agg(s.oid::regclass::text, ', ' order by s.oid)
      from (
        select c.oid
          from pg_class as c
         where c.relnamespace = 'sb_internal'::regnamespace
           and c.relkind = 'S'
           and c.relname ~ '^queue_[0-9]+_'
           and not exists (
             select 1
               from sb_internal.queue as q
              where q.queue_id = split_part(c.relname, '_', 2)::integer)
           and coalesce(pg_sequence_last_value(to_regclass(
                 'sb_internal.queue_' || split_part(c.relname, '_', 2) || '_search')), 0)
               < (date_part('epoch', clock_timestamp()) - 60) * 1000
         order by c.oid
         limit 1000
      ) as s);
begin
  if sequences is not null then
    execute 'drop sequence ' || sequences;
  end if;
exception
  when lock_not_available then
    null;
end
$$;
comment on function sb_internal._drop_stale_sequences() is
  'Drops what _queue_sequences created for queues that are gone by now, a minute after they were dropped, unless some of it is still in use: then next time.';
revoke all on function sb_internal._drop_stale_sequences() from public;
