create or replace function sb_internal._create_event_notification(
  caller name,
  name text,
  queue_name text,
  event text,
  to_service text,
  broker_instance text,
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  kind text := upper(_create_event_notification.event);
  instance text := lower(_create_event_notification.broker_instance);
begin
  perform sb_internal._require_admin(_create_event_notification.caller, 'create event notifications');
  perform sb_internal._require_name(_create_event_notification.name, 'event notification', 128);
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('queue', _create_event_notification.queue_name);
  if not sb_internal._require_free_name('event notification', _create_event_notification.name,
    exists (
      select 1
        from sb_internal.event_notification as n
       where n.queue_id = object.id
         and n.name = _create_event_notification.name),
    _create_event_notification.if_not_exists)
  then
    return;
  end if;
  perform sb_internal._require_user_object(object.id, 'queue ' || _create_event_notification.queue_name);
  if kind is null or kind not in ('QUEUE_ACTIVATION', 'BROKER_QUEUE_DISABLED') then
    perform sb_internal._raise('22023', array['event '
      || coalesce(_create_event_notification.event, '(null)') || ' is none of QUEUE_ACTIVATION, BROKER_QUEUE_DISABLED']);
  end if;
  perform sb_internal._require_name(_create_event_notification.to_service, 'service', 256);
  if char_length(instance) > 128 then
    perform sb_internal._raise('S8413');
  elsif instance = 'current database' then
    select b.broker_instance::text
      into instance
      from sb_internal.broker as b
     where b.singleton;
  end if;

  insert into sb_internal.event_notification (event_notification_id, name, queue_id, event, to_service, broker_instance)
  values (nextval('sb_internal.event_notification_id'), _create_event_notification.name, object.id, kind,
    _create_event_notification.to_service, instance)
      on conflict on constraint event_notification_name_key do nothing;
  if kind = 'QUEUE_ACTIVATION' then
    perform sb_internal._raise('S9718', array[q.name])
       from sb_internal.queue as q
      where q.queue_id = object.id
        and q.is_activation_enabled;
    update sb_internal.queue as q
       set has_activation_event = true
     where q.queue_id = object.id;
    perform sb_internal._look_again(object.id);
  end if;
  -- The activator repeats events while activation stays necessary: it has to know of the new watcher.
  perform sb_internal._announce('event_notification_created', 'queue', _create_event_notification.queue_name);
end
$$;
comment on function sb_internal._create_event_notification(name, text, text, text, text, text, boolean) is
  'CREATE EVENT NOTIFICATION behind sb.create_event_notification.';
revoke all on function sb_internal._create_event_notification(name, text, text, text, text, text, boolean) from public;
