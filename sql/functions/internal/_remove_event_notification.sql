create or replace function sb_internal._remove_event_notification(event_notification_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  n sb_internal.event_notification;
begin
  delete from sb_internal.event_notification as o
   where o.event_notification_id = _remove_event_notification.event_notification_id
  returning o.* into n;
  update sb_internal.queue as q
     set has_activation_event = false
   where q.queue_id = n.queue_id
     and q.has_activation_event
     and not exists (
       select 1
         from sb_internal.event_notification as o
        where o.queue_id = n.queue_id
          and o.event = 'QUEUE_ACTIVATION');
  if exists (
    select 1
      from sb_internal.endpoint as e
     where e.conversation_handle = n.conversation_handle
       and e.state <> 'DO')
  then
    perform sb_internal._end_conversation(current_user, n.conversation_handle, null, null, false);
  end if;
end
$$;
comment on function sb_internal._remove_event_notification(integer) is
  'Deletes a notification and ends its dialog (R-110). Locks the notification, then queue row, then the dialog.';
revoke all on function sb_internal._remove_event_notification(integer) from public;
