create or replace function sb.get_state(conversation_group_id uuid)
  returns jsonb
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._get_state(current_user, get_state.conversation_group_id);
end;
comment on function sb.get_state(uuid) is
  'The state kept for a conversation group by set_state; null when there is none. Needs receive on the group''s queue. Takes no lock: get or receive from the group first (R-399). Errors: S8420, S8436, 42501.';
revoke all on function sb.get_state(uuid) from public;
