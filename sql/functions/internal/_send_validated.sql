create or replace function sb_internal._send_validated(
  caller name,
  conversation_handles uuid[],
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
  conversation uuid;
begin
  foreach conversation in array _send_validated.conversation_handles loop
    if _send_validated.verdict then
      perform sb_internal._send(_send_validated.caller, conversation, _send_validated.message_type,
        _send_validated.bodies, _send_validated.is_text, true);
    else
      perform sb_internal._invalid_body(e, _send_validated.message_type, t.validation)
         from sb_internal.endpoint as e
        cross join sb_internal.message_type as t
        where e.conversation_handle = conversation
          and t.name = _send_validated.message_type;
    end if;
  end loop;
end
$$;
comment on function sb_internal._send_validated(name, uuid[], text, bytea[], boolean, boolean) is
  'Second half of SEND for a message type with a validator, after the validator has run. The first half has checked everything else and holds the endpoint locks.';
revoke all on function sb_internal._send_validated(name, uuid[], text, bytea[], boolean, boolean) from public;
