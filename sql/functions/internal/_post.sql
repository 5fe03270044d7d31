create or replace function sb_internal._post(
  conversation_handle uuid,
  message_type_id integer,
  message_body bytea
)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint;
  message_type text;
  owner name;
begin
  select o.*
    into e
    from sb_internal.endpoint as o
   where o.conversation_handle = _post.conversation_handle
     for no key update;
  if not found
    or sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle) not in ('SO', 'CO')
  then
    return false;
  end if;
  select t.name
    into message_type
    from sb_internal.message_type as t
   where t.message_type_id = _post.message_type_id;
  select q.owner
    into owner
    from sb_internal.service as s
    join sb_internal.queue as q on q.queue_id = s.queue_id
   where s.service_id = e.service_id;
  perform sb_internal._send(owner, e.conversation_handle, message_type, array[_post.message_body], false, true);
  return true;
end
$$;
comment on function sb_internal._post(uuid, integer, bytea) is
  'Sends on behalf of the broker itself; false when the conversation can no longer send.';
revoke all on function sb_internal._post(uuid, integer, bytea) from public;
