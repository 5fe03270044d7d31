create or replace function sb_internal._create_endpoint(
  conversation_handle uuid,
  peer_handle uuid,
  conversation_group_id uuid,
  service_id integer,
  service_contract_id integer,
  is_initiator boolean,
  far_service text,
  far_broker_instance text,
  lifetime timestamptz
)
  returns smallint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  own_priority smallint := 5;
begin
  if (select array_length(b.priority_levels, 1) > 1 from sb_internal.broker as b where b.singleton) then
    own_priority := sb_internal._priority(_create_endpoint.service_contract_id, _create_endpoint.service_id,
      _create_endpoint.far_service);
  end if;
  insert into sb_internal.endpoint (conversation_handle, peer_handle, conversation_group_id, lifetime,
    service_id, service_contract_id, priority, is_initiator, far_service, far_broker_instance)
  values (_create_endpoint.conversation_handle, _create_endpoint.peer_handle,
    _create_endpoint.conversation_group_id, _create_endpoint.lifetime, _create_endpoint.service_id,
    _create_endpoint.service_contract_id, own_priority, _create_endpoint.is_initiator,
    _create_endpoint.far_service, _create_endpoint.far_broker_instance);
  if _create_endpoint.lifetime is not null then
    insert into sb_internal.due (conversation_handle, is_lifetime, conversation_group_id, queue_id, priority, due_at)
    select _create_endpoint.conversation_handle, true, _create_endpoint.conversation_group_id, s.queue_id,
           own_priority, _create_endpoint.lifetime
      from sb_internal.service as s
     where s.service_id = _create_endpoint.service_id;
  end if;
  return own_priority;
end
$$;
comment on function sb_internal._create_endpoint(uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz) is
  'Inserts an endpoint and, with a lifetime, its due row; fixes the priority (R-100) and returns it.';
revoke all on function sb_internal._create_endpoint(uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz) from public;
