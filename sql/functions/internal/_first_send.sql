create or replace function sb_internal._first_send(
  conversation_handle uuid,
  quantity integer,
  out message_sequence_number bigint,
  out is_new boolean
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  message_sequence_number := (_first_send.quantity - 1)::bigint;
  is_new := true;
  -- Begun in this very transaction, which is how most dialogs start: nobody else can see it yet. (In a
  -- subtransaction the ids differ, and it goes the long way.)
  insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
  select e.conversation_handle, _first_send.quantity - 1
    from sb_internal.endpoint as e
   where e.conversation_handle = _first_send.conversation_handle
     and e.xmin = pg_current_xact_id()::xid
     and e.is_initiator;
  if found then
    return;
  end if;
  is_new := false;
  -- A SEND that waited for the counter row may hold it by now, although it has found another version of it
  -- than it looked for. END locks the endpoint before the counter: so must we, or leave it alone.
  if exists (
    select 1
      from sb_internal.send_counter as c
     where c.conversation_handle = _first_send.conversation_handle)
  then
    message_sequence_number := null;
    return;
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
    message_sequence_number := null;
    return;
  end if;
  update sb_internal.endpoint as e
     set has_counter = true
   where e.conversation_handle = _first_send.conversation_handle;
  insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
  values (_first_send.conversation_handle, _first_send.quantity - 1);
end
$$;
comment on function sb_internal._first_send(uuid, integer) is
  'Gives a conversation its counter row with its first SEND, having counted quantity messages, and returns the last number; null when a rival has made the row meanwhile: count there. is_new: an initiator begun in this transaction, whose peer cannot be there yet. Locks the endpoint, unless nobody else can see it. Writing the endpoint makes a repeatable read transaction that cannot see the rival''s row fail (40001) instead of counting from zero again. Error S8426.';
revoke all on function sb_internal._first_send(uuid, integer) from public;
