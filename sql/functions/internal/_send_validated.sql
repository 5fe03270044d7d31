create or replace function sb_internal._send_validated(
  caller name,
  conversation_handle uuid,
  message_type text,
  bodies bytea[],
  is_text boolean,
  verdict boolean
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
begin
  if _send_validated.verdict then
    perform sb_internal._send(_send_validated.caller, _send_validated.conversation_handle,
      _send_validated.message_type, _send_validated.bodies, _send_validated.is_text, true);
  else
    select o.*
      into e
      from sb_internal.endpoint as o
     where o.conversation_handle = _send_validated.conversation_handle
       for no key update;
    perform sb_internal._invalid_body(e, _send_validated.message_type, t.validation)
       from sb_internal.message_type as t
      where t.name = _send_validated.message_type;
  end if;
end
$$;
comment on function sb_internal._send_validated(name, uuid, text, bytea[], boolean, boolean) is
  'Second half of SEND for a message type with a validator, after the validator has run. The first half has checked the callers rights and holds the endpoint lock.';
revoke all on function sb_internal._send_validated(name, uuid, text, bytea[], boolean, boolean) from public;
