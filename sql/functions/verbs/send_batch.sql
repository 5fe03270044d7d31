create or replace function sb.send_batch(
  conversation_handle uuid,
  message_type text,
  message_bodies bytea[]
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send_batch.conversation_handle, send_batch.message_type,
    coalesce(send_batch.message_bodies, array[null::bytea]), false));
end;
comment on function sb.send_batch(uuid, text, bytea[]) is
  'SEND of several messages of one type on one conversation in one step, in the order of the array: much cheaper than one by one. An invalid one among them fails the whole batch. Errors and locks as send.';
revoke all on function sb.send_batch(uuid, text, bytea[]) from public;
