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
  message_type text;
  owner name;
begin
  select t.name
    into message_type
    from sb_internal.message_type as t
   where t.message_type_id = _post.message_type_id;
  select q.owner
    into owner
    from sb_internal.endpoint as e
    join sb_internal.service as s on s.service_id = e.service_id
    join sb_internal.queue as q on q.queue_id = s.queue_id
   where e.conversation_handle = _post.conversation_handle;
  perform sb_internal._send(owner, _post.conversation_handle, message_type, array[_post.message_body], false, true);
  return true;
exception
  -- The peer may end at any moment: only SEND itself, under its lock, knows.
  when sqlstate 'S8426' or sqlstate 'S8429' then
    return false;
end
$$;
comment on function sb_internal._post(uuid, integer, bytea) is
  'Sends on behalf of the broker itself; false when the conversation can no longer send.';
revoke all on function sb_internal._post(uuid, integer, bytea) from public;
