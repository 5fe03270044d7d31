create or replace function sb_internal._priority(
  service_contract_id integer,
  local_service_id integer,
  remote_service_name text
)
  returns smallint
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((
    select p.priority
      from sb_internal.conversation_priority as p
     where (p.service_contract_id is null or p.service_contract_id = _priority.service_contract_id)
       and (p.local_service_id is null or p.local_service_id = _priority.local_service_id)
       and (p.remote_service_name is null or p.remote_service_name = _priority.remote_service_name)
     order by (p.service_contract_id is not null) desc, (p.local_service_id is not null) desc,
       (p.remote_service_name is not null) desc
     limit 1), 5::smallint);
end
$$;
comment on function sb_internal._priority(integer, integer, text) is
  'Priority of an endpoint at its creation (R-098): contract before local service before remote service; 5 when nothing matches.';
revoke all on function sb_internal._priority(integer, integer, text) from public;
