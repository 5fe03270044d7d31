create or replace function sb_internal._invalid_body(
  e sb_internal.endpoint,
  message_type text,
  validation text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  code integer := case _invalid_body.validation when 'EMPTY' then 8430 else 9615 end;
  description text := 'The body of a message of type "' || _invalid_body.message_type || '" failed its validation.';
begin
  if (select b.is_validate_on_send from sb_internal.broker as b where b.singleton) then
    perform sb_internal._raise('S' || code, array[_invalid_body.message_type],
      'conversation_handle=' || e.conversation_handle);
  end if;
  -- The message is dropped and uses no sequence number; both sides get the Error.
  perform sb_internal._error_endpoint(e.conversation_handle, -code, description);
  perform sb_internal._error_endpoint(e.peer_handle, -code, description);
end
$$;
comment on function sb_internal._invalid_body(sb_internal.endpoint, text, text) is
  'What happens to a message that fails its validation: SEND fails under the option validate_on_send (S9615, S8430), else both sides get an Error (R-022, R-024).';
revoke all on function sb_internal._invalid_body(sb_internal.endpoint, text, text) from public;
