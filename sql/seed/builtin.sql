-- What every broker is born with (R-011 to R-017). May run again at any time: it adds what is missing and
-- leaves alone what was changed, so a dropped AutoCreatedLocal stays dropped.
do $$
declare
  documented constant text := 'https://schemas.microsoft.com/SQL/';
  sqlserver constant text := 'http://schemas.microsoft.com/SQL/';
begin
  perform sb_internal._lock_catalog();
  insert into sb_internal.broker (singleton)
  values (true)
      on conflict on constraint broker_pkey do nothing;
  if found then
    insert into sb_internal.route (route_id, name, owner, address)
    values (pg_catalog.nextval('sb_internal.route_id'), 'AutoCreatedLocal', current_user, 'LOCAL');
  end if;

  insert into sb_internal.message_type (message_type_id, name, sqlserver_name, owner, validation)
  values
    (1, documented || 'ServiceBroker/Error', sqlserver || 'ServiceBroker/Error', current_user, 'WELL_FORMED_XML'),
    (2, documented || 'ServiceBroker/EndDialog', sqlserver || 'ServiceBroker/EndDialog', current_user, 'EMPTY'),
    (4, documented || 'Notifications/EventNotification', sqlserver || 'Notifications/EventNotification',
      current_user, 'WELL_FORMED_XML'),
    (5, documented || 'ServiceBroker/DialogTimer', sqlserver || 'ServiceBroker/DialogTimer', current_user, 'EMPTY'),
    (14, 'DEFAULT', null, current_user, 'NONE')
      on conflict on constraint message_type_pkey do nothing;

  insert into sb_internal.contract (service_contract_id, name, sqlserver_name, owner, referencers)
  values
    (2, documented || 'Notifications/PostEventNotification', sqlserver || 'Notifications/PostEventNotification',
      current_user, '{public}'),
    (6, 'DEFAULT', null, current_user, '{public}')
      on conflict on constraint contract_pkey do nothing;
  insert into sb_internal.contract_message (service_contract_id, message_type_name, message_type_id, validation,
    is_sent_by_initiator, is_sent_by_target)
  values
    (2, documented || 'Notifications/EventNotification', 4, 'WELL_FORMED_XML', true, false),
    (6, 'DEFAULT', 14, 'NONE', true, true)
      on conflict on constraint contract_message_pkey do nothing;

  insert into sb_internal.queue (queue_id, name, owner, is_system)
  values (2, 'EventNotificationErrorsQueue', current_user, true)
      on conflict on constraint queue_pkey do nothing;
  insert into sb_internal.queue_monitor (queue_id)
  values (2)
      on conflict on constraint queue_monitor_pkey do nothing;
  perform sb_internal._queue_sequences(2);
  insert into sb_internal.service (service_id, name, sqlserver_name, owner, queue_id)
  values (2, documented || 'Notifications/EventNotificationService',
    sqlserver || 'Notifications/EventNotificationService', current_user, 2)
      on conflict on constraint service_pkey do nothing;
end
$$;
