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
  select case
    when not sb_internal._send(current_user, send_batch.conversation_handle, send_batch.message_type,
      coalesce(send_batch.message_bodies, array[null::bytea]), false, false)
    then sb_internal._send_validated(current_user, send_batch.conversation_handle, send_batch.message_type,
      send_batch.message_bodies, false,
      sb_internal._run_validator((sb_internal._validator(send_batch.message_type)).validator,
        (sb_internal._validator(send_batch.message_type)).validation, send_batch.message_bodies))
  end;
end;
comment on function sb.send_batch(uuid, text, bytea[]) is
  'SEND of several messages of one type on one conversation in one step, in the order of the array: much cheaper than one by one. An invalid one among them fails the whole batch. Errors and locks as send.';
revoke all on function sb.send_batch(uuid, text, bytea[]) from public;
