-- A move needs both rows, so once the group is ours and was the right one, the group cannot change.
create or replace function sb_internal._lock_conversation(conversation_handle uuid)
  returns sb_internal.endpoint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  locked sb_internal.endpoint;
begin
  if _lock_conversation.conversation_handle is null then
    perform sb_internal._raise('S8418');
  end if;
  perform sb_internal._lock_group_of(_lock_conversation.conversation_handle);
  select e.*
    into locked
    from sb_internal.endpoint as e
   where e.conversation_handle = _lock_conversation.conversation_handle
     for no key update;
  perform sb_internal._lock_counter(_lock_conversation.conversation_handle);
  if locked.conversation_handle is null then
    perform sb_internal._raise('S8426', array[_lock_conversation.conversation_handle::text]);
  end if;
  return locked;
end
$$;
comment on function sb_internal._lock_conversation(uuid) is
  'The lock order of one side: group row, endpoint row, counter row (the one SEND locks). Returns the endpoint as it is under the locks. A side in DO has left its group: only the endpoint is locked. Errors: S8418 null handle, S8426 unknown handle.';
revoke all on function sb_internal._lock_conversation(uuid) from public;
