create or replace function sb_internal._transmission_status(conversation_handle uuid)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint;
begin
  select o.*
    into e
    from sb_internal.endpoint as o
   where o.conversation_handle = _transmission_status.conversation_handle;
  if not found or not exists (
    select 1
      from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle)
  then
    return '';
  end if;
  case sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle)
    when 'ER' then
      return 'Held: an Error ended the conversation; end it here to drop what waits.';
    when 'DI' then
      return 'Held: the other side ended the conversation; end it here to drop what waits.';
    else
      null;
  end case;
  return coalesce(sb_internal._undeliverable(e.far_service, e.far_broker_instance), '');
end
$$;
comment on function sb_internal._transmission_status(uuid) is
  'Why the messages of the conversation wait in the transmission queue; empty when nothing is wrong (R-240). Decided when asked, never stored.';
revoke all on function sb_internal._transmission_status(uuid) from public;
