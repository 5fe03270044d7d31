create or replace function sb.send(conversation_handle uuid, message_type text default 'DEFAULT')
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type, null, false));
end;
comment on function sb.send(uuid, text) is
  'SEND without a body, see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body bytea
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[send.message_body], false));
end;
comment on function sb.send(uuid, text, bytea) is
  'SEND: sends a message on a conversation, in the caller''s transaction. Goes straight into the target queue when it can, else waits in sb.transmission_queue; that is no error (R-163, R-164). A zero-length body arrives as null. Locks the conversation, not its group: waits for another SEND, MOVE or END on the same conversation, never for a reader. Needs receive on the queue of the sending service. Errors: S8418 and S8426 handle, S8429 state, S8428, S8431, S8432 and S8434 message type, S8433 null body, S8459 over 268435456 bytes, S9618 own queue off with retention, S9615 and S8430 validation under the option validate_on_send, 42501.';
revoke all on function sb.send(uuid, text, bytea) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body text
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[pg_catalog.convert_to(send.message_body, 'UTF8')], true));
end;
comment on function sb.send(uuid, text, text) is
  'SEND of text, stored as UTF-8; see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text, text) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body json
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[pg_catalog.convert_to(send.message_body::text, 'UTF8')], true));
end;
comment on function sb.send(uuid, text, json) is
  'SEND of json, stored as its text in UTF-8; see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text, json) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body jsonb
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[pg_catalog.convert_to(send.message_body::text, 'UTF8')], true));
end;
comment on function sb.send(uuid, text, jsonb) is
  'SEND of jsonb, stored as its text in UTF-8; see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text, jsonb) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body xml
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[pg_catalog.convert_to(pg_catalog.textin(pg_catalog.xml_out(send.message_body)), 'UTF8')], true));
end;
comment on function sb.send(uuid, text, xml) is
  'SEND of xml, stored as its text in UTF-8; see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text, xml) from public;
