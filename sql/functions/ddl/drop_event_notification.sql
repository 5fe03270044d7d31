create or replace function sb.drop_event_notification(
  name text,
  queue_name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_event_notification(
    current_user, drop_event_notification.name, drop_event_notification.queue_name,
    drop_event_notification.if_exists
  );
end;
comment on function sb.drop_event_notification(text, text, boolean) is
  'DROP EVENT NOTIFICATION: its dialog ends, the subscriber gets EndDialog (R-110). For the owner of the queue and admins. Errors: 42501, S0208 no such queue, 42704 no such notification. Locks: the catalog, the queue row, the notification, then its dialog.';
revoke all on function sb.drop_event_notification(text, text, boolean) from public;
