create or replace function sb_internal._drop_event_notification(
  caller name,
  name text,
  queue_name text,
  if_exists boolean
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
  id integer;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('queue', _drop_event_notification.queue_name, _drop_event_notification.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_event_notification.caller, object.owner,
    'drop event notifications of queue ' || _drop_event_notification.queue_name);
  select n.event_notification_id
    into id
    from sb_internal.event_notification as n
   where n.queue_id = object.id
     and n.name = _drop_event_notification.name;
  if found then
    perform sb_internal._remove_event_notification(id);
  elsif _drop_event_notification.if_exists is not true then
    perform sb_internal._require_name(_drop_event_notification.name, 'event notification', 128);
    perform sb_internal._raise('42704', array['event notification', _drop_event_notification.name],
      'queue=' || _drop_event_notification.queue_name);
  end if;
end
$$;
comment on function sb_internal._drop_event_notification(name, text, text, boolean) is
  'DROP EVENT NOTIFICATION behind sb.drop_event_notification.';
revoke all on function sb_internal._drop_event_notification(name, text, text, boolean) from public;
