create or replace view sb.conversation_priorities
  with (security_barrier = true)
as
select p.priority_id,
       p.name,
       p.service_contract_id,
       p.local_service_id,
       p.remote_service_name,
       p.priority
  from sb_internal.conversation_priority as p
 where p.priority_id = any ((select sb_internal._visible(current_user, 'broker priority'))::integer[]);
comment on view sb.conversation_priorities is
  'Broker priorities, null for ANY; for admins, since nobody owns a priority (R-107).';
