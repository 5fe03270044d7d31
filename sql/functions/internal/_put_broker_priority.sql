create or replace function sb_internal._put_broker_priority(
  priority_id integer,
  name text,
  contract_name text,
  local_service_name text,
  remote_service_name text,
  priority_level integer
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  p sb_internal.conversation_priority;
  twin text;
begin
  select o.*
    into p
    from sb_internal.conversation_priority as o
   where o.priority_id = _put_broker_priority.priority_id;
  if _put_broker_priority.contract_name is not null then
    select c.id
      into p.service_contract_id
      from sb_internal._lookup('contract', _put_broker_priority.contract_name) as c;
  end if;
  if _put_broker_priority.local_service_name is not null then
    select s.id
      into p.local_service_id
      from sb_internal._lookup('service', _put_broker_priority.local_service_name) as s;
  end if;
  if _put_broker_priority.remote_service_name is not null then
    perform sb_internal._require_name(_put_broker_priority.remote_service_name, 'remote service', 256);
    p.remote_service_name := _put_broker_priority.remote_service_name;
  end if;
  if _put_broker_priority.priority_level not between 1 and 10 then
    perform sb_internal._raise('22023', array['priority_level must be between 1 and 10']);
  end if;
  p.priority := coalesce(_put_broker_priority.priority_level::smallint, p.priority, 5::smallint);

  -- The unique constraint takes two ANY for different.
  select o.name
    into twin
    from sb_internal.conversation_priority as o
   where o.service_contract_id is not distinct from p.service_contract_id
     and o.local_service_id is not distinct from p.local_service_id
     and o.remote_service_name is not distinct from p.remote_service_name
     and o.priority_id <> _put_broker_priority.priority_id;
  if found then
    perform sb_internal._raise('42710', array['a broker priority for the same contract and services:', twin]);
  end if;
  insert into sb_internal.conversation_priority as o
    (priority_id, name, service_contract_id, local_service_id, remote_service_name, priority)
  values (_put_broker_priority.priority_id, _put_broker_priority.name, p.service_contract_id, p.local_service_id,
    p.remote_service_name, p.priority)
      -- By name, so that one taken invisibly, under repeatable read, is 40001.
      on conflict on constraint conversation_priority_name_key do update
     set service_contract_id = excluded.service_contract_id,
         local_service_id = excluded.local_service_id,
         remote_service_name = excluded.remote_service_name,
         priority = excluded.priority;
  perform sb_internal._add_priority_level(p.priority);
end
$$;
comment on function sb_internal._put_broker_priority(integer, text, text, text, text, integer) is
  'Creates or changes a broker priority; null leaves a criterion as it is, ANY for a new one. Errors: 42602, 42704, S8423, 22023, 42710 when another has the same criteria.';
revoke all on function sb_internal._put_broker_priority(integer, text, text, text, text, integer) from public;
