create or replace function sb_internal._alter_service(
  caller name,
  name text,
  queue_name text,
  add_contracts text[],
  drop_contracts text[]
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  queue record;
  old_queue_id integer;
  contract record;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('service', _alter_service.name);
  perform sb_internal._require_owner(_alter_service.caller, object.owner, 'alter service ' || _alter_service.name);
  perform sb_internal._require_user_object(object.id, 'service ' || _alter_service.name);
  if _alter_service.queue_name is null
    and cardinality(coalesce(_alter_service.add_contracts, '{}') || coalesce(_alter_service.drop_contracts, '{}')) = 0
  then
    perform sb_internal._raise('S8493', array[_alter_service.name]);
  end if;

  for contract in
    select a.name, c.id, count(*) over (partition by c.id) as times
      from unnest(_alter_service.drop_contracts) as a (name)
     cross join lateral sb_internal._lookup('contract', a.name) as c
  loop
    if contract.times > 1 then
      perform sb_internal._raise('S8404', array[contract.name]);
    end if;
    delete from sb_internal.service_contract as c
     where c.service_id = object.id
       and c.service_contract_id = contract.id;
    if not found then
      perform sb_internal._raise('42704', array['contract of service ' || _alter_service.name || ':', contract.name]);
    end if;
  end loop;
  perform sb_internal._accept_contracts(_alter_service.caller, object.id, _alter_service.add_contracts);

  if _alter_service.queue_name is not null then
    queue := sb_internal._lookup('queue', _alter_service.queue_name);
    perform sb_internal._require_owner(_alter_service.caller, queue.owner,
      'put a service on queue ' || _alter_service.queue_name);
    perform sb_internal._require_user_object(queue.id, 'queue ' || _alter_service.queue_name);
    select s.queue_id
      into old_queue_id
      from sb_internal.service as s
     where s.service_id = object.id;
    if queue.id <> old_queue_id then
      perform sb_internal._move_service(object.id, old_queue_id, queue.id);
      perform sb_internal._deliver(queue.id, _alter_service.name);
    end if;
  end if;
  perform sb_internal._announce('service_altered', 'service', _alter_service.name);
end
$$;
comment on function sb_internal._alter_service(name, text, text, text[], text[]) is
  'ALTER SERVICE behind sb.alter_service.';
revoke all on function sb_internal._alter_service(name, text, text, text[], text[]) from public;
