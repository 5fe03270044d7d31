create or replace function sb.begin_conversation_timer(conversation_handle uuid, timeout interval)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._begin_conversation_timer(current_user, begin_conversation_timer.conversation_handle,
    begin_conversation_timer.timeout);
end;
comment on function sb.begin_conversation_timer(uuid, interval) is
  'BEGIN CONVERSATION TIMER: after timeout (> 0) this side receives one DialogTimer message. One timer a side: a new call replaces it (R-230). Needs no running process. Locks the group. Errors: S8418, S8426, S8458 already ended, S8410 beyond the lifetime, 22023, 42501.';
revoke all on function sb.begin_conversation_timer(uuid, interval) from public;
