create or replace function sb_internal._multicast(
  caller name,
  conversation_handles uuid[],
  message_type text,
  message_body bytea
)
  returns sb_internal.unsettled
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  conversation uuid;
  previous uuid;
  pending sb_internal.unsettled;
  unsettled sb_internal.unsettled;
begin
  if _multicast.conversation_handles is null then
    perform sb_internal._raise('S8418');
  end if;
  perform sb_internal._lock_counters(_multicast.conversation_handles);
  for conversation in
    select h.handle
      from unnest(_multicast.conversation_handles) as h (handle)
     order by h.handle nulls first
  loop
    if conversation is null then
      perform sb_internal._raise('S8418');
    elsif conversation = previous then
      perform sb_internal._raise('SB001', array[conversation::text]);
    end if;
    previous := conversation;
    pending := sb_internal._send(_multicast.caller, conversation, _multicast.message_type,
      array[_multicast.message_body], false);
    if pending.validator is not null then
      -- One verdict for all who wait for it.
      pending.conversation_handles := coalesce(unsettled.conversation_handles, '{}') || conversation;
      unsettled := pending;
    end if;
  end loop;
  return case when unsettled.validator is not null then unsettled end;
end
$$;
comment on function sb_internal._multicast(name, uuid[], text, bytea) is
  'SEND on several conversations behind sb.multicast: all or none, since a failing one fails the statement. Returns what a validator has to settle, as _send does.';
revoke all on function sb_internal._multicast(name, uuid[], text, bytea) from public;
