create or replace function sb_internal._add_priority_level(priority_level integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  update sb_internal.broker as b
     set priority_levels = (
           select array_agg(p.level order by p.level desc)
             from unnest(b.priority_levels || _add_priority_level.priority_level::smallint) as p (level))
   where b.singleton
     and _add_priority_level.priority_level <> all (b.priority_levels);
  if found then
    perform sb_internal._queue_sequences(q.queue_id)
       from sb_internal.queue as q
      order by q.queue_id;
  end if;
end
$$;
comment on function sb_internal._add_priority_level(integer) is
  'Makes a priority one that receive looks for, in every queue. Levels are never removed: endpoints may have them.';
revoke all on function sb_internal._add_priority_level(integer) from public;
