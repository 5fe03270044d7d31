create or replace function sb.clear_back_off(conversation_group_id uuid)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._clear_back_off(current_user, clear_back_off.conversation_group_id);
end;
comment on function sb.clear_back_off(uuid) is
  'For activators: a handler of the group succeeded after failures; its back-off begins anew. Admins only. Locks: the group''s back-off row.';
revoke all on function sb.clear_back_off(uuid) from public;
