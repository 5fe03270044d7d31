create or replace function sb.end_conversation(
  conversation_handle uuid,
  error_code integer default null,
  error_description text default null,
  cleanup boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._end_conversation(current_user, end_conversation.conversation_handle, end_conversation.error_code,
    end_conversation.error_description, end_conversation.cleanup);
end;
comment on function sb.end_conversation(uuid, integer, text, boolean) is
  'END CONVERSATION: ends this side and removes its unread messages, timer and, with the last conversation of the group, the group and its state. The peer gets an EndDialog after all that was sent before; with error_code (> 0) and error_description (at most 3000 characters) it gets an Error instead, and what has not left is dropped; with cleanup it is told nothing. When the peer has already ended or an error came, nothing is sent. Works while queues are off. Locks the group, then the conversation; waits for them. Errors: S8418, S8426, S8427 already ended, S8419, S8424, 22023, 42501.';
revoke all on function sb.end_conversation(uuid, integer, text, boolean) from public;
