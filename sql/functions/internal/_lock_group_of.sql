create or replace function sb_internal._lock_group_of(conversation_handle uuid)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  held uuid;
  seen uuid;
begin
  loop
    select e.conversation_group_id
      into seen
      from sb_internal.endpoint as e
     where e.conversation_handle = _lock_group_of.conversation_handle
       and e.state <> 'DO';
    if not found then
      return null;
    end if;
    exit when seen = held;

    perform 1
       from sb.conversation_group as g
      where g.conversation_group_id = seen
        for no key update skip locked;
    if found then
      -- One more look at the endpoint: a move may have committed between the two statements. The lock
      -- of the group it left then stays with us; nothing is waited for while holding it unless the
      -- next group is busy too.
      held := seen;
      continue;
    end if;

    -- Busy. A lock got by waiting must not be kept when the conversation was moved meanwhile: it would
    -- be held in the wrong order while we wait for the next one. Rolling the subtransaction back frees it.
    begin
      perform 1
         from sb.conversation_group as g
        where g.conversation_group_id = seen
          for no key update;
      perform 1
         from sb_internal.endpoint as e
        where e.conversation_handle = _lock_group_of.conversation_handle
          and e.conversation_group_id = seen
          and e.state <> 'DO';
      if not found then
        perform sb_internal._raise('SB003');
      end if;
      return seen;
    exception
      when sqlstate 'SB003' then
        null;
    end;
  end loop;
  return held;
end
$$;
comment on function sb_internal._lock_group_of(uuid) is
  'Locks the group of a conversation, for no key update to the end of the transaction, waiting for it; returns the group, or null when the conversation does not exist or has ended (DO). Holds no lock of a group that the conversation left meanwhile.';
revoke all on function sb_internal._lock_group_of(uuid) from public;
