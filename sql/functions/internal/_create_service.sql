create or replace function sb_internal._create_service(
  caller name,
  name text,
  queue_name text,
  contracts text[],
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  queue record;
  id integer;
begin
  perform sb_internal._require_admin(_create_service.caller, 'create services');
  perform sb_internal._require_name(_create_service.name, 'service', 128);
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('service', _create_service.name,
    (select l.id from sb_internal._lookup('service', _create_service.name, true) as l) is not null,
    _create_service.if_not_exists)
  then
    return;
  end if;
  queue := sb_internal._lookup('queue', _create_service.queue_name);
  perform sb_internal._require_user_object(queue.id, 'queue ' || _create_service.queue_name);
  insert into sb_internal.service (service_id, name, owner, queue_id)
  values (nextval('sb_internal.service_id'), _create_service.name, _create_service.caller, queue.id)
      on conflict on constraint service_name_key do nothing
  returning service_id into id;
  perform sb_internal._accept_contracts(_create_service.caller, id, _create_service.contracts);
  perform sb_internal._deliver_now(null, _create_service.name);
  perform sb_internal._announce('service_created', 'service', _create_service.name);
end
$$;
comment on function sb_internal._create_service(name, text, text, text[], boolean) is
  'CREATE SERVICE behind sb.create_service.';
revoke all on function sb_internal._create_service(name, text, text, text[], boolean) from public;
