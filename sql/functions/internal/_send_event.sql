create or replace function sb_internal._send_event(queue_id integer, event text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  n sb_internal.event_notification;
  queue_name text;
  body bytea;
begin
  -- The row lock makes the first event begin one dialog, not two. Never the catalog lock: events come
  -- out of sends and receives, which hold locks of conversations.
  for n in
    select o.*
      from sb_internal.event_notification as o
     where o.queue_id = _send_event.queue_id
       and o.event = _send_event.event
     order by o.event_notification_id
       for no key update
  loop
    if n.conversation_handle is null then
      n.conversation_handle := sb_internal._create_endpoint(gen_random_uuid(), gen_random_uuid(), null, 2, 2, true,
        n.to_service, n.broker_instance, null, sb_internal._priority(2, 2, n.to_service));
      update sb_internal.event_notification as o
         set conversation_handle = n.conversation_handle
       where o.event_notification_id = n.event_notification_id;
    end if;
    if body is null then
      select q.name
        into queue_name
        from sb_internal.queue as q
       where q.queue_id = _send_event.queue_id;
      body := sb_internal._event_body(_send_event.event, queue_name);
    end if;
    if not sb_internal._post(n.conversation_handle, 4, body) then
      perform sb_internal._remove_event_notification(n.event_notification_id);
      perform sb_internal._announce('event_notification_dropped', 'event_notification', n.name);
      raise log 'sb: event notification % of queue % is dropped: its conversation % can no longer send',
        n.name, queue_name, n.conversation_handle;
    end if;
  end loop;
end
$$;
comment on function sb_internal._send_event(integer, text) is
  'Sends QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED to the event notifications of a queue, in this transaction (R-112, R-113). One whose subscriber has ended the conversation is dropped (R-111). Locks the notifications, then their dialogs.';
revoke all on function sb_internal._send_event(integer, text) from public;
