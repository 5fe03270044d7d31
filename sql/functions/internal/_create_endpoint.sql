create or replace function sb_internal._create_endpoint(
  conversation_handle uuid,
  peer_handle uuid,
  conversation_group_id uuid,
  service_id integer,
  service_contract_id integer,
  is_initiator boolean,
  far_service text,
  far_broker_instance text,
  lifetime timestamptz,
  priority smallint
)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- A group of its own takes the handle's value: one uuid less to make, one page less to touch.
  with own_group as (
    insert into sb.conversation_group (conversation_group_id, service_id)
    select _create_endpoint.conversation_handle, _create_endpoint.service_id
     where _create_endpoint.conversation_group_id is null)
  insert into sb_internal.endpoint (conversation_handle, peer_handle, conversation_group_id, lifetime,
    service_id, service_contract_id, priority, is_initiator, far_service, far_broker_instance)
  values (_create_endpoint.conversation_handle, _create_endpoint.peer_handle,
    coalesce(_create_endpoint.conversation_group_id, _create_endpoint.conversation_handle),
    _create_endpoint.lifetime, _create_endpoint.service_id, _create_endpoint.service_contract_id,
    _create_endpoint.priority, _create_endpoint.is_initiator,
    _create_endpoint.far_service, _create_endpoint.far_broker_instance);
  if _create_endpoint.lifetime is not null then
    -- Holds off alter_service, which moves due rows: the queue read next is the right one.
    lock table sb_internal.message in access share mode;
    insert into sb_internal.due (conversation_handle, is_lifetime, conversation_group_id, queue_id, priority, due_at)
    select _create_endpoint.conversation_handle, true,
           coalesce(_create_endpoint.conversation_group_id, _create_endpoint.conversation_handle), s.queue_id,
           _create_endpoint.priority, _create_endpoint.lifetime
      from sb_internal.service as s
     where s.service_id = _create_endpoint.service_id;
  end if;
  return _create_endpoint.conversation_handle;
end
$$;
comment on function sb_internal._create_endpoint(
  uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz, smallint) is
  'Inserts one side of a dialog: the endpoint, with a lifetime its due row, and its group unless conversation_group_id names one that the caller has locked. Its counter comes with its first SEND. Rights and arguments are checked by the caller, who also holds the lock of _share_names on the service. Returns the handle.';
revoke all on function sb_internal._create_endpoint(
  uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz, smallint) from public;
