create or replace function sb_internal._error_endpoint(
  conversation_handle uuid,
  code integer,
  description text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
    message_type_id, conversation_handle, conversation_group_id, priority, message_body)
  select nextval('sb_internal.queuing_order'), -1, sb_internal._now(), s.queue_id,
         1, e.conversation_handle, e.conversation_group_id, e.priority,
         sb_internal._error_body(sb_internal._system_namespace(), _error_endpoint.code, _error_endpoint.description)
    from sb_internal.endpoint as e
    join sb_internal.service as s on s.service_id = e.service_id
   where e.conversation_handle = _error_endpoint.conversation_handle
     and e.state <> 'DO';
  perform sb_internal._arrived(s.queue_id)
     from sb_internal.endpoint as e
     join sb_internal.service as s on s.service_id = e.service_id
    where e.conversation_handle = _error_endpoint.conversation_handle;
end
$$;
comment on function sb_internal._error_endpoint(uuid, integer, text) is
  'Puts an Error message of the broker into the queue of the endpoint named, which is thereby in ER. Insert only: takes no lock of that side, and goes in also while its queue is off, since nobody can receive it before the queue is on.';
revoke all on function sb_internal._error_endpoint(uuid, integer, text) from public;
