create or replace function sb.get_conversation_group(queue_name text, timeout interval default null)
  returns uuid
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._get_conversation_group(current_user, get_conversation_group.queue_name,
    get_conversation_group.timeout);
end;
comment on function sb.get_conversation_group(text, interval) is
  'GET CONVERSATION GROUP: locks the group that receive would take next, to the end of the transaction, and returns its id; null when there is none (within the timeout, see receive). Removes nothing. Errors: S0208, S9617, 42501.';
revoke all on function sb.get_conversation_group(text, interval) from public;
