create or replace function sb.cancel_conversation_timer(conversation_handle uuid)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._cancel_conversation_timer(current_user, cancel_conversation_timer.conversation_handle);
end;
comment on function sb.cancel_conversation_timer(uuid) is
  'Cancels the timer of this side, if one is set. No counterpart in SQL Server. Locks and errors as begin_conversation_timer.';
revoke all on function sb.cancel_conversation_timer(uuid) from public;
