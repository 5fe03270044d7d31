create or replace function sb.create_event_notification(
  name text,
  queue_name text,
  event text,
  to_service text,
  broker_instance text default null,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_event_notification(
    current_user, create_event_notification.name, create_event_notification.queue_name,
    create_event_notification.event, create_event_notification.to_service,
    create_event_notification.broker_instance, create_event_notification.if_not_exists
  );
end;
comment on function sb.create_event_notification(text, text, text, text, text, boolean) is
  'CREATE EVENT NOTIFICATION on a queue: QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED, as messages to a service that accepts the contract PostEventNotification, on one dialog that lives until the notification is dropped (R-108 to R-112). Names are unique per queue. Admins only. Errors: 42501, 42602 names, 42710 exists, S0208, 22023 event, S8413, S9718 the queue has activation enabled (R-063), S9663. Locks: the catalog, the queue row.';
revoke all on function sb.create_event_notification(text, text, text, text, text, boolean) from public;
