create or replace function sb.set_state(conversation_group_id uuid, state jsonb)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._set_state(current_user, set_state.conversation_group_id, set_state.state);
end;
comment on function sb.set_state(uuid, jsonb) is
  'Keeps a jsonb value for a conversation group, null removes it; it goes when the group''s last conversation ends. Locks the group, waiting for it. Needs receive on the group''s queue. Errors: S8420, S8436, 42501.';
revoke all on function sb.set_state(uuid, jsonb) from public;
