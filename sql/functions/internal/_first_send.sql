create or replace function sb_internal._first_send(conversation_handle uuid, quantity integer)
  returns bigint
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
    return null;
  end if;
  perform 1
     from sb_internal.endpoint as e
    where e.conversation_handle = _first_send.conversation_handle
      for no key update;
  if not found then
    perform sb_internal._raise('S8426', array[_first_send.conversation_handle::text]);
  end if;
  if exists (
    select 1
      from sb_internal.send_counter as c
     where c.conversation_handle = _first_send.conversation_handle)
  then
    return null;
  end if;
  update sb_internal.endpoint as e
     set has_counter = true
   where e.conversation_handle = _first_send.conversation_handle;
  insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
  values (_first_send.conversation_handle, _first_send.quantity - 1);
  return (_first_send.quantity - 1)::bigint;
end
$$;
comment on function sb_internal._first_send(uuid, integer) is
  'Gives a conversation its counter row with its first SEND, having counted quantity messages, and returns the last number; null when a rival has made the row meanwhile: count there. For a dialog begun in this transaction SEND does it itself. Locks the endpoint; writing it makes a repeatable read transaction that cannot see the rival''s row fail (40001) instead of counting from zero again. Error S8426.';
revoke all on function sb_internal._first_send(uuid, integer) from public;
