create or replace view sb.service_queue_usages
  with (security_barrier = true)
as
select s.service_id,
       s.queue_id as service_queue_id
  from sb_internal.service as s
 where s.service_id = any ((select sb_internal._visible(current_user, 'service'))::integer[]);
comment on view sb.service_queue_usages is
  'The queue of each service that the reader sees in sb.services.';
