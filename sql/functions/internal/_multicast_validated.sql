create or replace function sb_internal._multicast_validated(
  caller name,
  conversation_handles uuid[],
  message_type text,
  message_body bytea,
  verdict boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._send_validated(_multicast_validated.caller, h.handle, _multicast_validated.message_type,
    array[_multicast_validated.message_body], false, _multicast_validated.verdict)
     from (
       select u.handle
         from unnest(_multicast_validated.conversation_handles) as u (handle)
        order by u.handle) as h;
end
$$;
comment on function sb_internal._multicast_validated(name, uuid[], text, bytea, boolean) is
  'Second half of multicast for a message type with a validator.';
revoke all on function sb_internal._multicast_validated(name, uuid[], text, bytea, boolean) from public;
