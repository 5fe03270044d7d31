create or replace function sb_internal._move_conversation(
  caller name,
  conversation_handle uuid,
  conversation_group_id uuid
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint;
  locked bigint;
begin
  if _move_conversation.conversation_handle is null then
    perform sb_internal._raise('S8418');
  end if;
  if _move_conversation.conversation_group_id is null then
    perform sb_internal._raise('S8420');
  end if;

  -- Both groups in id order. The first look says which; when the conversation was moved while we
  -- waited, the locks are given back and it is looked at again.
  loop
    select o.*
      into e
      from sb_internal.endpoint as o
     where o.conversation_handle = _move_conversation.conversation_handle;
    if not found then
      perform sb_internal._raise('S8426', array[_move_conversation.conversation_handle::text]);
    end if;
    perform sb_internal._may_use_conversation(_move_conversation.caller, e, 'move');
    if e.state = 'DO' then
      perform sb_internal._raise('S8438', array[e.conversation_handle::text, e.state]);
    end if;
    begin
      perform 1
         from sb.conversation_group as g
        where g.conversation_group_id in (e.conversation_group_id, _move_conversation.conversation_group_id)
        order by g.conversation_group_id
          for no key update;
      get diagnostics locked = row_count;
      -- Also when a group that we waited for has gone, and another one with its id is there, which is not locked.
      perform 1
         from sb_internal.endpoint as o
        where o.conversation_handle = e.conversation_handle
          and o.conversation_group_id is not distinct from e.conversation_group_id
          and o.state <> 'DO'
          and locked = (
            select count(*)
              from sb.conversation_group as g
             where g.conversation_group_id in (e.conversation_group_id, _move_conversation.conversation_group_id));
      if not found then
        perform sb_internal._raise('SB003');
      end if;
      exit;
    exception
      when sqlstate 'SB003' then
        null;
    end;
  end loop;

  if e.conversation_group_id = _move_conversation.conversation_group_id then
    return;
  end if;
  perform 1
     from sb.conversation_group as g
    where g.conversation_group_id = _move_conversation.conversation_group_id;
  if not found then
    perform sb_internal._raise('S8436', array[_move_conversation.conversation_group_id::text]);
  end if;
  perform 1
     from sb.conversation_group as g
    where g.conversation_group_id = _move_conversation.conversation_group_id
      and g.service_id = e.service_id;
  if not found then
    perform sb_internal._raise('S8439', array[_move_conversation.conversation_group_id::text,
      e.conversation_handle::text]);
  end if;

  update sb_internal.endpoint as o
     set conversation_group_id = _move_conversation.conversation_group_id
   where o.conversation_handle = e.conversation_handle;
  -- SEND takes an endpoint that its transaction has written for one that it has begun, with the lock of this name.
  perform sb_internal._share_names(e.far_service, null);
  perform sb_internal._lock_counter(e.conversation_handle);
  -- Messages before due rows, as alter_service.
  update sb_internal.message as m
     set conversation_group_id = _move_conversation.conversation_group_id
   where m.conversation_handle = e.conversation_handle;
  update sb_internal.due as d
     set conversation_group_id = _move_conversation.conversation_group_id
   where d.conversation_handle = e.conversation_handle;
  update sb_internal.retained_message as r
     set conversation_group_id = _move_conversation.conversation_group_id
   where r.conversation_handle = e.conversation_handle;
  perform sb_internal._leave_group(e.conversation_handle, e.conversation_group_id);
end
$$;
comment on function sb_internal._move_conversation(name, uuid, uuid) is
  'MOVE CONVERSATION behind sb.move_conversation.';
revoke all on function sb_internal._move_conversation(name, uuid, uuid) from public;
