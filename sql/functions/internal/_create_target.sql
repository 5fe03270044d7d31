create or replace function sb_internal._create_target(e sb_internal.endpoint)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  target record;
  own text;
begin
  if sb_internal._route(e.far_service, e.far_broker_instance) is distinct from 'LOCAL' then
    return 'wait';
  end if;
  -- The lock that the endpoint's foreign key takes anyway, taken first: a service being dropped is
  -- then simply missing.
  select s.service_id, s.queue_id, s.owner, s.senders
    into target
    from sb_internal.service as s
   where s.name = e.far_service
     for key share;
  if not found then
    if e.far_broker_instance is not null then
      perform sb_internal._error_endpoint(e.conversation_handle, -8490, 'The service "' || e.far_service
        || '" does not exist in broker instance ' || e.far_broker_instance || '.');
      return 'error';
    end if;
    return 'wait';
  end if;
  if not sb_internal._queue_is_on(target.queue_id) then
    return 'wait';
  end if;

  select s.owner
    into own
    from sb_internal.service as s
   where s.service_id = e.service_id;
  if own <> target.owner and not sb_internal._may(own, target.owner, target.senders) then
    perform sb_internal._error_endpoint(e.conversation_handle, -8494,
      'The owner of the initiating service has no permission to send to service "' || e.far_service || '".');
    return 'error';
  end if;
  if not exists (
    select 1
      from sb_internal.service_contract as a
     where a.service_id = target.service_id
       and a.service_contract_id = e.service_contract_id)
  then
    perform sb_internal._error_endpoint(e.conversation_handle, -8408,
      'The service "' || e.far_service || '" does not accept the contract of the dialog.');
    return 'error';
  end if;

  insert into sb.conversation_group (conversation_group_id, service_id)
  values (e.peer_handle, target.service_id);
  perform sb_internal._create_endpoint(e.peer_handle, e.conversation_handle, e.peer_handle, target.service_id,
    e.service_contract_id, false, s.name, (select b.broker_instance::text from sb_internal.broker as b), e.lifetime)
     from sb_internal.service as s
    where s.service_id = e.service_id;
  return 'created';
end
$$;
comment on function sb_internal._create_target(sb_internal.endpoint) is
  'Creates the target endpoint of a dialog for its first message. Returns created; wait when the message has to stay in the transmission queue (no route, service missing, queue off); error when the dialog failed for good and its Error is in the initiators queue (-8490, -8494, -8408).';
revoke all on function sb_internal._create_target(sb_internal.endpoint) from public;
