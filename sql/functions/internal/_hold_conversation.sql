create or replace function sb_internal._hold_conversation(conversation_handle uuid)
  returns sb_internal.endpoint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  held sb_internal.endpoint;
begin
  if _hold_conversation.conversation_handle is null then
    perform sb_internal._raise('S8418');
  end if;
  perform sb_internal._lock_group_of(_hold_conversation.conversation_handle);
  -- Holds off alter_service, which moves due rows to another queue: the queue found from here on is the right one.
  lock table sb_internal.message in access share mode;
  select e.*
    into held
    from sb_internal.endpoint as e
   where e.conversation_handle = _hold_conversation.conversation_handle;
  if not found then
    perform sb_internal._raise('S8426', array[_hold_conversation.conversation_handle::text]);
  end if;
  return held;
end
$$;
comment on function sb_internal._hold_conversation(uuid) is
  'Locks the group of a conversation and returns the endpoint: enough to keep END, MOVE and readers out, and no SEND waits for it. Errors: S8418 null handle, S8426 unknown handle.';
revoke all on function sb_internal._hold_conversation(uuid) from public;
