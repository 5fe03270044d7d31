create or replace view sb.queue_messages
  with (security_barrier = true)
as
select q.name as queue_name,
       m.status,
       m.priority,
       m.queuing_order,
       m.conversation_group_id,
       m.conversation_handle,
       m.message_sequence_number,
       case b.system_names when 'sqlserver' then coalesce(s.sqlserver_name, s.name) else s.name end as service_name,
       s.service_id,
       case b.system_names when 'sqlserver' then coalesce(c.sqlserver_name, c.name) else c.name end
         as service_contract_name,
       m.service_contract_id,
       case b.system_names when 'sqlserver' then coalesce(t.sqlserver_name, t.name) else t.name end
         as message_type_name,
       m.message_type_id,
       case
         when t.validation = 'NONE' then 'N'
         when t.validation = 'EMPTY' then 'E'
         when t.validation in ('WELL_FORMED_XML', 'VALID_XML') then 'X'
         else 'J'
       end as validation,
       m.message_body,
       m.message_enqueue_time
  from sb_internal.queue as q
  join lateral (
    -- An orphan, whose endpoint is gone, is no message.
    select 1::smallint as status, e.priority, r.queuing_order, e.conversation_group_id,
           r.conversation_handle, r.message_sequence_number, e.service_id, e.service_contract_id,
           r.message_type_id, r.message_body, r.message_enqueue_time
      from sb_internal.message as r
      join sb_internal.endpoint as e on e.conversation_handle = r.conversation_handle
     where r.queue_id = q.queue_id
       and e.state <> 'DO'
     union all
    select r.status, r.priority, r.queuing_order, e.conversation_group_id,
           r.conversation_handle, r.message_sequence_number, e.service_id, e.service_contract_id,
           r.message_type_id, r.message_body, r.message_enqueue_time
      from sb_internal.retained_message as r
      join sb_internal.endpoint as e on e.conversation_handle = r.conversation_handle
     where r.queue_id = q.queue_id
     union all
    -- What time has made due is ready like a message that arrived.
    select 1::smallint, e.priority, 0::bigint, e.conversation_group_id,
           d.conversation_handle, -1::bigint, e.service_id, e.service_contract_id,
           case when d.is_lifetime then 1 else 5 end,
           case when d.is_lifetime then sb_internal._lifetime_error() end, d.due_at
      from sb_internal.due as d
      join sb_internal.endpoint as e on e.conversation_handle = d.conversation_handle
     where d.queue_id = q.queue_id
       and d.due_at <= pg_catalog.clock_timestamp()
       and e.state <> 'DO'
       and (not d.is_lifetime
         or e.state = 'CO'
         and not exists (
           select 1
             from sb_internal.message as r
            where r.conversation_handle = d.conversation_handle
              and r.message_type_id in (1, 2)
              and (r.message_type_id = 1 or r.message_enqueue_time < d.due_at)))
  ) as m on true
  join sb_internal.service as s on s.service_id = m.service_id
  left join sb_internal.contract as c on c.service_contract_id = m.service_contract_id
  left join sb_internal.message_type as t on t.message_type_id = m.message_type_id
 cross join sb_internal.broker as b
 where q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.queue_messages is
  'Every queue''s messages, without taking them or any lock, of queues that the reader may receive from. status: 1 ready, 0 received and retained, 3 retained copy of a message sent. A timer or lifetime that is due shows as the message it is, queuing_order 0.';
