create or replace function sb.multicast(
  conversation_handles uuid[],
  message_type text,
  message_body bytea
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._multicast(current_user, multicast.conversation_handles,
    multicast.message_type, multicast.message_body));
end;
comment on function sb.multicast(uuid[], text, bytea) is
  'SEND of one message on several conversations: all or none. Conversations are locked in handle order. Errors: SB001 a handle listed twice; else as send.';
revoke all on function sb.multicast(uuid[], text, bytea) from public;
