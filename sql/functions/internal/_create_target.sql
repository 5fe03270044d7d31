create or replace function sb_internal._create_target(
  e sb_internal.endpoint,
  own sb_internal.service_status,
  target sb_internal.service_status,
  out outcome text,
  out priority smallint
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  outcome := 'wait';
  -- Where there is no route but AutoCreatedLocal, the way of everything leads here.
  if (target.is_local_only and (e.far_broker_instance is null or e.far_broker_instance = target.broker_instance::text))
      is not true
    and sb_internal._route(e.far_service, e.far_broker_instance) is distinct from 'LOCAL'
  then
    return;
  end if;
  if target.service_id is null then
    if e.far_broker_instance is not null then
      outcome := 'error';
      perform sb_internal._error_endpoint(e.conversation_handle, -8490, 'The service "' || e.far_service
        || '" does not exist in broker instance ' || e.far_broker_instance || '.');
    end if;
    return;
  end if;
  if not target.is_accepting
    or target.is_poison_watched
      and pg_sequence_last_value(('sb_internal.queue_' || target.queue_id || '_poison_alarm')::regclass) = 1
      and sb_internal._poison_limit_reached(target.queue_id)
  then
    return;
  end if;
  if own.service_owner <> target.service_owner
    and not sb_internal._may(own.service_owner, target.service_owner, target.senders)
  then
    outcome := 'error';
    perform sb_internal._error_endpoint(e.conversation_handle, -8494,
      'The owner of the initiating service has no permission to send to service "' || e.far_service || '".');
    return;
  end if;
  if e.service_contract_id <> all (target.contracts) then
    outcome := 'error';
    perform sb_internal._error_endpoint(e.conversation_handle, -8408,
      'The service "' || e.far_service || '" does not accept the contract of the dialog.');
    return;
  end if;

  priority := case
    when target.has_priorities then sb_internal._priority(e.service_contract_id, target.service_id, own.service_name)
    else 5::smallint
  end;
  if sb_internal._create_endpoint(e.peer_handle, e.conversation_handle, null, target.service_id, e.service_contract_id,
    false, own.service_name, target.broker_instance::text, e.lifetime, priority) is not null
  then
    outcome := 'created';
  end if;
end
$$;
comment on function sb_internal._create_target(
  sb_internal.endpoint, sb_internal.service_status, sb_internal.service_status) is
  'Creates the target endpoint of a dialog for its first message, in a group of its own with the id of the handle; own is the service of the initiator, target what _find_target returns. outcome: created; wait when the message has to stay in the transmission queue (no route, service missing, queue off, broker off); error when the dialog failed for good and its Error is in the queue of the initiator (-8490, -8494, -8408).';
revoke all on function sb_internal._create_target(
  sb_internal.endpoint, sb_internal.service_status, sb_internal.service_status) from public;
