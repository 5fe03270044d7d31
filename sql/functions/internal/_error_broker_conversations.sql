-- The plans may be from a time of few conversations, or by statistics of such a time: the settings leave
-- nothing but indexes. jit: what the settings make expensive on paper would be compiled, for longer than it
-- runs.
create or replace function sb_internal._error_broker_conversations(caller name)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
begin
  perform sb_internal._require_read_committed('error_broker_conversations');
  perform sb_internal._require_admin(_error_broker_conversations.caller, 'end all conversations with an error');
  perform sb_internal._lock_catalog();
  perform sb_internal._stop_messaging();
  perform sb_internal._error_endpoint(e.conversation_handle, -9719,
    'The database broker has ended all conversations by operator request.')
     from sb_internal.endpoint as e
    where e.state <> 'DO';
  update sb_internal.broker as b
     set is_broker_enabled = true
   where b.singleton;
  perform sb_internal._deliver(null, null);
  perform sb_internal._announce('broker_conversations_errored', 'database', current_database());
end
$$;
comment on function sb_internal._error_broker_conversations(name) is
  'ERROR_BROKER_CONVERSATIONS behind sb.error_broker_conversations. Sides that have ended already (DO) are left to finish.';
revoke all on function sb_internal._error_broker_conversations(name) from public;
