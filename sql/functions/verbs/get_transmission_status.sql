create or replace function sb.get_transmission_status(conversation_handle uuid)
  returns text
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._get_transmission_status(current_user, get_transmission_status.conversation_handle);
end;
comment on function sb.get_transmission_status(uuid) is
  'GET_TRANSMISSION_STATUS: why messages of the conversation wait in the transmission queue, in words; empty when nothing is wrong or the handle is unknown (R-240). Takes no locks.';
revoke all on function sb.get_transmission_status(uuid) from public;
