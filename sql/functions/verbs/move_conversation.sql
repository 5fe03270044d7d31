create or replace function sb.move_conversation(conversation_handle uuid, conversation_group_id uuid)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._move_conversation(current_user, move_conversation.conversation_handle,
    move_conversation.conversation_group_id);
end;
comment on function sb.move_conversation(uuid, uuid) is
  'MOVE CONVERSATION: puts this side of a conversation into another existing group of the same service. Locks both groups, in id order, and the conversation; waits for them. A group left empty goes. Errors: S8418, S8420, S8426, S8436 no such group, S8439 group of another service, S8438 already ended, 42501.';
revoke all on function sb.move_conversation(uuid, uuid) from public;
