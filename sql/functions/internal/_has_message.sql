create or replace function sb_internal._has_message(for_conversation uuid, group_id uuid)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  handles uuid[] := case
    when _has_message.for_conversation is not null then array[_has_message.for_conversation]
    else array(
      select e.conversation_handle
        from sb_internal.endpoint as e
       where e.conversation_group_id = _has_message.group_id
         and e.state <> 'DO')  -- around which an orphan may lie
  end;
  handle uuid;
begin
  foreach handle in array handles loop
    if exists (
         select 1
           from sb_internal.due as d
          where d.conversation_handle = handle
            and d.due_at <= sb_internal._now())
      or exists (
         select 1
           from sb_internal.message as m
          where m.conversation_handle = handle
            and m.message_type_id in (1, 2))
      or exists (
         select 1
           from sb_internal.message as m
          where m.conversation_handle = handle
            and m.message_sequence_number >= coalesce((
              select c.message_sequence_number
                from sb_internal.receive_cursor as c
               where c.conversation_handle = handle
               order by c.conversation_handle desc, c.message_sequence_number desc
               limit 1), -1))
    then
      return true;
    end if;
  end loop;
  return false;
end
$$;
comment on function sb_internal._has_message(uuid, uuid) is
  'Whether a receive for_conversation, or else for_group, would find something. Takes no locks.';
revoke all on function sb_internal._has_message(uuid, uuid) from public;
