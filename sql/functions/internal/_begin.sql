create or replace function sb_internal._begin(
  service_id integer,
  service_contract_id integer,
  far_service text,
  far_broker_instance text,
  conversation_group_id uuid,
  lifetime timestamptz
)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  handle uuid := gen_random_uuid();
begin
  -- The lock that the endpoint's foreign key takes anyway: against a service being dropped it is a
  -- plain "not found" this way. After the group lock, as the key would.
  perform 1
     from sb_internal.service as s
    where s.service_id = _begin.service_id
      for key share;
  if not found then
    perform sb_internal._raise('S8423', array[_begin.service_id::text]);
  end if;
  -- A fresh dialog's group takes the handle's value: one uuid less to make, one page less to touch.
  if _begin.conversation_group_id is null then
    insert into sb.conversation_group (conversation_group_id, service_id)
    values (handle, _begin.service_id);
  end if;
  perform sb_internal._create_endpoint(handle, gen_random_uuid(), coalesce(_begin.conversation_group_id, handle),
    _begin.service_id, _begin.service_contract_id, true, _begin.far_service, _begin.far_broker_instance,
    _begin.lifetime, cardinality(b.priority_levels) > 1)
     from sb_internal.broker as b
    where b.singleton;
  return handle;
end
$$;
comment on function sb_internal._begin(integer, integer, text, text, uuid, timestamptz) is
  'Creates the initiator side of a dialog, state SO; rights and arguments are checked by the caller. conversation_group_id: a group that the caller has locked, or null for a new one.';
revoke all on function sb_internal._begin(integer, integer, text, text, uuid, timestamptz) from public;
