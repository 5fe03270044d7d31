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
       pg_catalog.to_regrole(pg_catalog.quote_ident(q.owner))::oid::integer as principal_id,
       q.is_poison_disabled
         or q.is_enabled and q.queue_id <> all ((select sb_internal._queues_on())::integer[]) as is_poison_disabled
  from sb_internal.queue as q
 where q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.service_queues is
  'Queues that the reader owns or may receive from. is_receive_enabled and is_enqueue_enabled go together (R-050) and are false as soon as the poison limit is reached, also before that is written down; is_poison_disabled tells those from queues that were stopped by hand, until they are started again.';
