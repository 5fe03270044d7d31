create or replace view sb.transmission_queue
  with (security_barrier = true)
as
select t.conversation_handle,
       t.to_service_name,
       e.far_broker_instance as to_broker_instance,
       case b.system_names when 'sqlserver' then coalesce(s.sqlserver_name, s.name) else s.name end as from_service_name,
       case b.system_names when 'sqlserver' then coalesce(c.sqlserver_name, c.name) else c.name end
         as service_contract_name,
       t.enqueue_time,
       t.message_sequence_number,
       case b.system_names when 'sqlserver' then coalesce(y.sqlserver_name, y.name) else y.name end as message_type_name,
       t.message_type_id = 1 as is_conversation_error,
       t.message_type_id = 2 as is_end_of_dialog,
       t.message_body,
       sb_internal._transmission_status(t.conversation_handle) as transmission_status,
       e.priority
  from sb_internal.transmission as t
  join sb_internal.endpoint as e on e.conversation_handle = t.conversation_handle
  join sb_internal.service as s on s.service_id = e.service_id
  left join sb_internal.contract as c on c.service_contract_id = e.service_contract_id
  left join sb_internal.message_type as y on y.message_type_id = t.message_type_id
 cross join sb_internal.broker as b
 where s.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.transmission_queue is
  'Messages that wait to be delivered, of conversations of services whose queue the reader may receive from. transmission_status says why, for the whole conversation (R-242).';
