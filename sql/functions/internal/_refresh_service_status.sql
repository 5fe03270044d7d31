create or replace function sb_internal._refresh_service_status()
  returns trigger
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  insert into sb_internal.service_status (service_id, queue_id, is_accepting, is_queue_enabled, is_retention_enabled,
    is_poison_watched, has_activation_event, queue_owner, receivers)
  select s.service_id, q.queue_id, b.is_broker_enabled and q.is_enabled, q.is_enabled, q.is_retention_enabled,
         q.is_poison_message_handling_enabled, q.has_activation_event, q.owner, q.receivers
    from sb_internal.service as s
    join sb_internal.queue as q on q.queue_id = s.queue_id
   cross join sb_internal.broker as b
   where case tg_table_name
           when 'queue' then q.queue_id = (to_jsonb(new) ->> 'queue_id')::integer
           when 'service' then s.service_id = (to_jsonb(new) ->> 'service_id')::integer
           else true
         end
   order by s.service_id
  on conflict on constraint service_status_pkey do update
     set queue_id = excluded.queue_id, is_accepting = excluded.is_accepting,
         is_queue_enabled = excluded.is_queue_enabled, is_retention_enabled = excluded.is_retention_enabled,
         is_poison_watched = excluded.is_poison_watched, has_activation_event = excluded.has_activation_event,
         queue_owner = excluded.queue_owner, receivers = excluded.receivers;
  return null;
end
$$;
comment on function sb_internal._refresh_service_status() is
  'Trigger of broker, queue and service: rewrites the status rows concerned. Those who update the three tables hold the catalog lock or the queue''s row lock, so it waits for nobody.';
revoke all on function sb_internal._refresh_service_status() from public;
