create or replace function sb_internal._refresh_service_status()
  returns trigger
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  changed constant jsonb := to_jsonb(case when tg_op = 'DELETE' then old else new end);
  stale integer[];
begin
  stale := array(
    select s.service_id
      from sb_internal.service as s
     where case
             when tg_table_name = 'queue' then s.queue_id = (changed ->> 'queue_id')::integer
             when tg_table_name in ('service', 'service_contract') then s.service_id = (changed ->> 'service_id')::integer
             else true
           end);
  -- The poison limit switches a queue off without the catalog lock. Wait for such a rival here, and look at what it
  -- has left with the next statement: one that had looked before would write its own, old view.
  perform 1
     from sb_internal.service_status as t
    where t.service_id = any (stale)
    order by t.service_id
      for no key update;
  insert into sb_internal.service_status as t (service_id, queue_id, is_accepting, is_queue_enabled,
    is_retention_enabled, is_poison_watched, has_activation_event, queue_owner, receivers, service_name,
    service_owner, senders, contracts, broker_instance, has_priorities, is_local_only)
  select s.service_id, q.queue_id, b.is_broker_enabled and q.is_enabled, q.is_enabled, q.is_retention_enabled,
         q.is_poison_message_handling_enabled, q.has_activation_event, q.owner, q.receivers, s.name, s.owner, s.senders,
         array(
           select a.service_contract_id
             from sb_internal.service_contract as a
            where a.service_id = s.service_id
            order by a.service_contract_id),
         b.broker_instance, cardinality(b.priority_levels) > 1,
         coalesce((
           select bool_and(r.remote_service_name is null and r.broker_instance is null and r.lifetime is null
             and r.address = 'LOCAL')
             from sb_internal.route as r), false)
    from sb_internal.service as s
    join sb_internal.queue as q on q.queue_id = s.queue_id
   cross join sb_internal.broker as b
   where s.service_id = any (stale)
   order by s.service_id
  on conflict on constraint service_status_pkey do update
     set queue_id = excluded.queue_id, is_accepting = excluded.is_accepting,
         is_queue_enabled = excluded.is_queue_enabled, is_retention_enabled = excluded.is_retention_enabled,
         is_poison_watched = excluded.is_poison_watched, has_activation_event = excluded.has_activation_event,
         queue_owner = excluded.queue_owner, receivers = excluded.receivers, service_name = excluded.service_name,
         service_owner = excluded.service_owner, senders = excluded.senders, contracts = excluded.contracts,
         broker_instance = excluded.broker_instance, has_priorities = excluded.has_priorities,
         is_local_only = excluded.is_local_only;
  return null;
end
$$;
comment on function sb_internal._refresh_service_status() is
  'Trigger of the tables that service_status is made of: rewrites the rows concerned. Locks them, and so waits for a transaction in which the poison limit has switched a queue off; everybody else who writes one of the tables holds the catalog lock.';
revoke all on function sb_internal._refresh_service_status() from public;
