create or replace function sb_internal._first_send(conversation_handle uuid)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- A SEND that waited for the counter row may hold it by now, although it has found another version of it
  -- than it looked for. END locks the endpoint before the counter: so must we, or leave it alone.
  if exists (
    select 1
      from sb_internal.send_counter as c
     where c.conversation_handle = _first_send.conversation_handle)
  then
    return false;
  end if;
  perform 1
     from sb_internal.endpoint as e
    where e.conversation_handle = _first_send.conversation_handle
      for no key update;
  if not found then
    perform sb_internal._raise('S8426', array[_first_send.conversation_handle::text]);
  end if;
  if not exists (
    select 1
      from sb_internal.send_counter as c
     where c.conversation_handle = _first_send.conversation_handle)
  then
    update sb_internal.endpoint as e
       set has_counter = true
     where e.conversation_handle = _first_send.conversation_handle;
    insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
    values (_first_send.conversation_handle, -1);
  end if;
  return false;
end
$$;
comment on function sb_internal._first_send(uuid) is
  'Gives a conversation its counter row before its first SEND. Locks the endpoint, unless the row is there; a rival that has made it meanwhile is fine. Writing the endpoint makes a repeatable read transaction that cannot see the rival''s row fail (40001) instead of counting from zero again. Returns false: count now. Error S8426.';
revoke all on function sb_internal._first_send(uuid) from public;
