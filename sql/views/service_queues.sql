create or replace view sb.service_queues
  with (security_barrier = true)
as
select q.name,
       q.queue_id,
       q.owner,
       q.max_readers,
       q.activation_procedure,
       q.execute_as,
       q.is_activation_enabled,
       q.queue_id = any ((select sb_internal._queues_on())::integer[]) as is_receive_enabled,
       q.queue_id = any ((select sb_internal._queues_on())::integer[]) as is_enqueue_enabled,
       q.is_retention_enabled,
       q.is_poison_message_handling_enabled,
       q.is_system as is_ms_shipped,
       pg_catalog.to_regrole(pg_catalog.quote_ident(q.owner))::oid::integer as principal_id
  from sb_internal.queue as q
 where q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.service_queues is
  'Queues that the reader owns or may receive from. is_receive_enabled and is_enqueue_enabled go together (R-050) and are false as soon as the poison limit is reached, also before that is written down.';
