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
  has_priorities boolean
)
  returns smallint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  own_priority smallint := 5::smallint;
begin
  if _create_endpoint.has_priorities then
    own_priority := sb_internal._priority(_create_endpoint.service_contract_id, _create_endpoint.service_id,
      _create_endpoint.far_service);
  end if;
  insert into sb_internal.endpoint (conversation_handle, peer_handle, conversation_group_id, lifetime,
    service_id, service_contract_id, priority, is_initiator, has_counter, far_service, far_broker_instance)
  values (_create_endpoint.conversation_handle, _create_endpoint.peer_handle,
    _create_endpoint.conversation_group_id, _create_endpoint.lifetime, _create_endpoint.service_id,
    _create_endpoint.service_contract_id, own_priority, _create_endpoint.is_initiator,
    _create_endpoint.is_initiator,
    _create_endpoint.far_service, _create_endpoint.far_broker_instance);
  if _create_endpoint.is_initiator then
    insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
    values (_create_endpoint.conversation_handle, -1);
  end if;
  if _create_endpoint.lifetime is not null then
    -- Holds off alter_service, which moves due rows: the queue read next is the right one.
    lock table sb_internal.message in access share mode;
    insert into sb_internal.due (conversation_handle, is_lifetime, conversation_group_id, queue_id, priority, due_at)
    select _create_endpoint.conversation_handle, true, _create_endpoint.conversation_group_id, s.queue_id,
           own_priority, _create_endpoint.lifetime
      from sb_internal.service as s
     where s.service_id = _create_endpoint.service_id;
  end if;
  return own_priority;
end
$$;
comment on function sb_internal._create_endpoint(uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz, boolean) is
  'Inserts an endpoint, an initiator''s counter row and, with a lifetime, the due row; fixes the priority (R-100) and returns it. has_priorities: the broker knows more levels than the default.';
revoke all on function sb_internal._create_endpoint(
  uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz, boolean) from public;
