create or replace view sb.conversation_endpoints
  with (security_barrier = true)
as
select e.conversation_handle,
       case when e.is_initiator then e.conversation_handle else e.peer_handle end as conversation_id,
       e.is_initiator,
       e.service_contract_id,
       e.conversation_group_id,
       e.service_id,
       e.lifetime,
       x.state,
       case x.state
         when 'SO' then 'STARTED_OUTBOUND'
         when 'CO' then 'CONVERSING'
         when 'DI' then 'DISCONNECTED_INBOUND'
         when 'DO' then 'DISCONNECTED_OUTBOUND'
         when 'ER' then 'ERROR'
       end as state_desc,
       e.far_service,
       e.far_broker_instance,
       pg_catalog.to_regrole(pg_catalog.quote_ident(s.owner))::oid::integer as principal_id,
       (select d.due_at
          from sb_internal.due as d
         where d.conversation_handle = e.conversation_handle
           and not d.is_lifetime) as dialog_timer,
       coalesce((
         select c.message_sequence_number + 1
           from sb_internal.send_counter as c
          where c.conversation_handle = e.conversation_handle
          order by c.conversation_handle desc, c.message_sequence_number desc
          limit 1), (
         -- A side in DO counts no more; the end it sent is the last of what waits.
         select pg_catalog.max(t.message_sequence_number) + 1
           from sb_internal.transmission as t
          where t.conversation_handle = e.conversation_handle), 0) as send_sequence,
       e.service_id < 65536 as is_system,
       e.priority
  from sb_internal.endpoint as e
  join sb_internal.service as s on s.service_id = e.service_id
 cross join lateral sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle) as x (state)
 where s.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.conversation_endpoints is
  'Both sides of conversations, each with the handle that its side uses; of services whose queue the reader may receive from. conversation_id is what the two sides share. state is SO, CO, DI, DO or ER as it holds now, also when the end is still unread or the lifetime has just passed. send_sequence is the next number to be sent, dialog_timer when the timer is due.';
