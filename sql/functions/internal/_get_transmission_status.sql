create or replace function sb_internal._get_transmission_status(caller name, conversation_handle uuid)
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
   where o.conversation_handle = _get_transmission_status.conversation_handle;
  if not found then
    return '';
  end if;
  perform sb_internal._may_use_conversation(_get_transmission_status.caller, e, 'see the status of');
  return sb_internal._transmission_status(e.conversation_handle);
end
$$;
comment on function sb_internal._get_transmission_status(name, uuid) is
  'GET_TRANSMISSION_STATUS behind sb.get_transmission_status.';
revoke all on function sb_internal._get_transmission_status(name, uuid) from public;
