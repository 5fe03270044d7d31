create or replace function sb_internal._move_service(service_id integer, from_queue_id integer, to_queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  moving uuid[];
begin
  perform sb_internal._require_read_committed('alter_service to another queue');
  -- A SEND that has read the old queue may not have inserted yet: all it holds on the message table is
  -- the lock of that read. Only this mode waits for it too, and the statements below then see its rows.
  if not sb_internal._lock_table('sb_internal.message', '10 s') then
    perform sb_internal._raise('S3716', array['service ' || s.name, 'transactions that have touched messages'],
      'retry=when no receive waits and no handler runs')
       from sb_internal.service as s
      where s.service_id = _move_service.service_id;
  end if;
  perform sb_internal._raise('S9617', array[q.name], sb_internal._stopped_by(q.queue_id))
     from sb_internal.queue as q
    where q.queue_id in (_move_service.from_queue_id, _move_service.to_queue_id)
      and not sb_internal._queue_is_on(q.queue_id);

  update sb_internal.service as s
     set queue_id = _move_service.to_queue_id
   where s.service_id = _move_service.service_id;
  select array_agg(e.conversation_handle)
    into moving
    from sb_internal.endpoint as e
   where e.service_id = _move_service.service_id;

  -- Orders are never reused in another queue: new ones, in the old order.
  with moved as (
    delete from sb_internal.message as m
     where m.queue_id = _move_service.from_queue_id
       and m.conversation_handle = any (moving)
    returning m.*
  )
  insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
    message_type_id, conversation_handle, conversation_group_id, priority, message_body)
  select nextval('sb_internal.queuing_order'), o.message_sequence_number, o.message_enqueue_time,
         _move_service.to_queue_id, o.message_type_id, o.conversation_handle, o.conversation_group_id,
         o.priority, o.message_body
    from (
      select m.*
        from moved as m
       order by m.queuing_order
    ) as o;
  update sb_internal.retained_message as r
     set queue_id = _move_service.to_queue_id
   where r.conversation_handle = any (moving);
  update sb_internal.due as d
     set queue_id = _move_service.to_queue_id
   where d.conversation_handle = any (moving);

  perform pg_notify('sb_queue_' || _move_service.from_queue_id, '');
  perform sb_internal._look_again(_move_service.to_queue_id);
end
$$;
comment on function sb_internal._move_service(integer, integer, integer) is
  'Moves a service with its messages, retained messages and due rows to another queue. Error S9617 while either queue is off. Waits for every transaction that has touched messages, waiting receives included, at most 10 s and never in the way of others for more than a fifth of a second; then S3716.';
revoke all on function sb_internal._move_service(integer, integer, integer) from public;
