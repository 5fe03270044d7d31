create or replace function sb_internal._alter_broker_priority(
  caller name,
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
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
begin
  perform sb_internal._require_admin(_alter_broker_priority.caller, 'alter broker priorities');
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('broker priority', _alter_broker_priority.name);
  if num_nonnulls(_alter_broker_priority.contract_name, _alter_broker_priority.local_service_name,
    _alter_broker_priority.remote_service_name, _alter_broker_priority.priority_level) = 0
  then
    perform sb_internal._raise('22023', array['nothing to change for broker priority ' || _alter_broker_priority.name]);
  end if;
  perform sb_internal._put_broker_priority(object.id, _alter_broker_priority.name,
    _alter_broker_priority.contract_name, _alter_broker_priority.local_service_name,
    _alter_broker_priority.remote_service_name, _alter_broker_priority.priority_level);
end
$$;
comment on function sb_internal._alter_broker_priority(name, text, text, text, text, integer) is
  'ALTER BROKER PRIORITY behind sb.alter_broker_priority.';
revoke all on function sb_internal._alter_broker_priority(name, text, text, text, text, integer) from public;
