create or replace function sb_internal._leave_group(conversation_handle uuid, conversation_group_id uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    -- Others may have joined the group, set timers, received or kept state since the snapshot, and we would neither
    -- see that nor, since they write no row of ours, fail.
    insert into sb_internal.loose_end (conversation_handle, conversation_group_id)
    values (_leave_group.conversation_handle, _leave_group.conversation_group_id);
  elsif not exists (
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
      current_setting('sbroker.left_group', true)), 4000), true);
  end if;
end
$$;
comment on function sb_internal._leave_group(uuid, uuid) is
  'Removes a group that the conversation has left, with its state, when no conversation is in it any more (R-246); above read committed leaves that to maintain (_tie_loose_ends). The caller holds the group lock.';
revoke all on function sb_internal._leave_group(uuid, uuid) from public;
