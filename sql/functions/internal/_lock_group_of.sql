create or replace function sb_internal._lock_group_of(conversation_handle uuid)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
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

    -- The conversation may be moved between the look and the lock, whether or not we wait. The lock of the
    -- group it left must not be kept: we would hold it, in the wrong order, while we wait for the next
    -- one. Rolling the subtransaction back frees it. It may even have left and come back to a new group with the
    -- same id, which is not the one that we waited for.
    begin
      perform 1
         from sb.conversation_group as g
        where g.conversation_group_id = seen
          for no key update;
      if not found then
        -- In 0.1.0 a repeatable read transaction could end a group under a newcomer. What is left has no group to
        -- lock; it can be ended all the same.
        if exists (
             select 1
               from sb_internal.endpoint as e
              where e.conversation_handle = _lock_group_of.conversation_handle
                and e.conversation_group_id is not distinct from seen
                and e.state <> 'DO'
                and not exists (
                  select 1
                    from sb.conversation_group as g
                   where g.conversation_group_id = seen))
        then
          return seen;
        end if;
        perform sb_internal._raise('SB003');
      end if;
      perform 1
         from sb_internal.endpoint as e
        where e.conversation_handle = _lock_group_of.conversation_handle
          and e.conversation_group_id is not distinct from seen
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
end
$$;
comment on function sb_internal._lock_group_of(uuid) is
  'Locks the group of a conversation, for no key update to the end of the transaction, waiting for it; returns the group, or null when the conversation does not exist or has ended (DO). Holds no lock of a group that the conversation left meanwhile.';
revoke all on function sb_internal._lock_group_of(uuid) from public;
