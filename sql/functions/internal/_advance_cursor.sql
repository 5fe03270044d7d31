create or replace function sb_internal._advance_cursor(
  conversation_handle uuid,
  previous bigint,
  next bigint
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  update sb_internal.receive_cursor as c
     set message_sequence_number = _advance_cursor.next
   where c.conversation_handle = _advance_cursor.conversation_handle
     and c.message_sequence_number = _advance_cursor.previous;
  if not found then
    insert into sb_internal.receive_cursor (conversation_handle, message_sequence_number)
    values (_advance_cursor.conversation_handle, _advance_cursor.next);
  end if;
end
$$;
comment on function sb_internal._advance_cursor(uuid, bigint, bigint) is
  'Moves the receive cursor of a conversation on; previous: where it was, anything when there was none. The caller holds the group lock.';
revoke all on function sb_internal._advance_cursor(uuid, bigint, bigint) from public;
