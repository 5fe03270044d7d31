create or replace function sb.back_off_group(conversation_group_id uuid)
  returns interval
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._back_off_group(current_user, back_off_group.conversation_group_id);
end;
comment on function sb.back_off_group(uuid) is
  'For activators: the group''s handler failed; receive without for_… leaves the group alone for the time returned: 0.1 s, doubling with each failure to 30 s, with jitter. To be called outside the transaction that failed, and before that gives the group free. Admins only. Locks: the group''s back-off row.';
revoke all on function sb.back_off_group(uuid) from public;
