create or replace function sb_internal._leave_group(conversation_group_id uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select 1
      from sb_internal.endpoint as e
     where e.conversation_group_id = _leave_group.conversation_group_id
       and e.state <> 'DO')
  then
    delete from sb_internal.state as s
     where s.conversation_group_id = _leave_group.conversation_group_id;
    delete from sb_internal.group_backoff as b
     where b.conversation_group_id = _leave_group.conversation_group_id;
    delete from sb.conversation_group as g
     where g.conversation_group_id = _leave_group.conversation_group_id;
    -- For _lock_named_group, in this transaction.
    perform set_config('sbroker.left_group', left(concat_ws(' ', _leave_group.conversation_group_id,
      current_setting('sbroker.left_group', true)), 1000), true);
  else
    perform sb_internal._write_group(_leave_group.conversation_group_id);
  end if;
end
$$;
comment on function sb_internal._leave_group(uuid) is
  'Removes a group, with its state, when no conversation is left in it (R-246). The caller holds the group lock.';
revoke all on function sb_internal._leave_group(uuid) from public;
