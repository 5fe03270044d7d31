create or replace function sb_internal._effective_state(
  state text,
  is_initiator boolean,
  lifetime timestamptz,
  conversation_handle uuid
)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  control integer;
begin
  -- What this side wrote itself stays: ER never falls back to DI, DO is final.
  if _effective_state.state <> 'CO' then
    return _effective_state.state;
  end if;
  -- The peer never writes my row. That it ended or failed is the message it left in my queue. An end that
  -- came after the lifetime came too late.
  select min(m.message_type_id)
    into control
    from sb_internal.message as m
   where m.conversation_handle = _effective_state.conversation_handle
     and m.message_type_id in (1, 2)
     and (m.message_type_id = 1 or _effective_state.lifetime is null
       or m.message_enqueue_time < _effective_state.lifetime);
  if control = 1 then
    return 'ER';
  elsif control = 2 then
    return 'DI';
  elsif _effective_state.lifetime <= sb_internal._now() then
    return 'ER';
  elsif _effective_state.is_initiator
    and not exists (
      select 1
        from sb_internal.send_counter as c
       where c.conversation_handle = _effective_state.conversation_handle
         and c.message_sequence_number >= 0)
  then
    return 'SO';
  end if;
  return 'CO';
end
$$;
comment on function sb_internal._effective_state(text, boolean, timestamptz, uuid) is
  'The state machine of an endpoint, in one place: SO begun, nothing sent; CO both may send; DI the peer has ended; ER an error or the end of the lifetime came; DO ended here, the last message still has to leave. Arguments are the columns of its row.';
revoke all on function sb_internal._effective_state(text, boolean, timestamptz, uuid) from public;
