create or replace function sb_internal._after_restore(caller name)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  q record;
  level smallint;
  highest bigint;
  sb_owner constant name := (select pg_get_userbyid(n.nspowner) from pg_namespace as n where n.nspname = 'sb');
begin
  perform sb_internal._require_admin(_after_restore.caller, 'call after_restore');
  perform sb_internal._lock_catalog();
  for q in
    select o.queue_id, b.priority_levels
      from sb_internal.queue as o
     cross join sb_internal.broker as b
  loop
    perform sb_internal._queue_sequences(q.queue_id);
    perform sb_internal._poison_reset(q.queue_id);
    perform setval(('sb_internal.queue_' || q.queue_id || '_search')::regclass, 0);
    foreach level in array q.priority_levels loop
      perform setval(('sb_internal.queue_' || q.queue_id || '_hint_' || level)::regclass, 0);
    end loop;
  end loop;
  select greatest(
           (select max(m.queuing_order) from sb_internal.message as m),
           (select max(r.queuing_order) from sb_internal.retained_message as r))
    into highest;
  if highest >= coalesce(pg_sequence_last_value('sb_internal.queuing_order'), 0) then
    perform setval('sb_internal.queuing_order', highest);
  end if;
  perform sb_internal._next_catalog_ids();
  -- As its migration does: autovacuum never comes to a table of one row.
  analyze sb_internal.broker;

  -- The system is his who owns sb here. Else its events would be those of a stranger.
  update sb_internal.message_type as t
     set owner = sb_owner
   where t.message_type_id < 65536
     and t.owner <> sb_owner;
  update sb_internal.contract as c
     set owner = sb_owner
   where c.service_contract_id < 65536
     and c.owner <> sb_owner;
  update sb_internal.queue as o
     set owner = sb_owner
   where o.is_system
     and o.owner <> sb_owner;
  update sb_internal.service as s
     set owner = sb_owner
   where s.service_id < 65536
     and s.owner <> sb_owner;
  perform sb_internal._sync_all_privileges();
end
$$;
comment on function sb_internal._after_restore(name) is
  'sb.after_restore with the caller''s rights checked.';
revoke all on function sb_internal._after_restore(name) from public;
