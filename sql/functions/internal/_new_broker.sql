create or replace function sb_internal._new_broker(caller name)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_new_broker.caller, 'make a new broker');
  perform sb_internal._require_read_committed('new_broker');
  perform sb_internal._lock_catalog();
  perform sb_internal._stop_messaging();
  -- Deleted, not truncated: older snapshots keep what they see, and state tables of users, which
  -- reference the groups, are cleaned by their own foreign keys.
  delete from sb_internal.message;
  delete from sb_internal.retained_message;
  delete from sb_internal.transmission;
  delete from sb_internal.due;
  delete from sb_internal.receive_cursor;
  delete from sb_internal.send_counter;
  delete from sb_internal.group_backoff;
  delete from sb_internal.state;
  delete from sb_internal.endpoint;
  delete from sb.conversation_group;
  update sb_internal.event_notification as n
     set conversation_handle = null
   where n.conversation_handle is not null;
  update sb_internal.queue_monitor as m
     set state = 'INACTIVE'
   where m.state <> 'INACTIVE';
  update sb_internal.broker as b
     set broker_instance = gen_random_uuid(),
         is_broker_enabled = true
   where b.singleton;
  perform sb_internal._announce('new_broker', 'database', current_database());
end
$$;
comment on function sb_internal._new_broker(name) is
  'NEW_BROKER behind sb.new_broker. Event notifications stay and begin new dialogs.';
revoke all on function sb_internal._new_broker(name) from public;
