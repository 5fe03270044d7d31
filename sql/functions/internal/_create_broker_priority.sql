create or replace function sb_internal._create_broker_priority(
  caller name,
  name text,
  contract_name text,
  local_service_name text,
  remote_service_name text,
  priority_level integer,
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_create_broker_priority.caller, 'create broker priorities');
  perform sb_internal._require_name(_create_broker_priority.name, 'broker priority', 128);
  perform sb_internal._lock_catalog();
  if sb_internal._require_free_name('broker priority', _create_broker_priority.name,
    exists (
      select 1
        from sb_internal.conversation_priority as p
       where p.name = _create_broker_priority.name),
    _create_broker_priority.if_not_exists)
  then
    perform sb_internal._put_broker_priority(nextval('sb_internal.priority_id')::integer,
      _create_broker_priority.name, _create_broker_priority.contract_name,
      _create_broker_priority.local_service_name, _create_broker_priority.remote_service_name,
      _create_broker_priority.priority_level);
  end if;
end
$$;
comment on function sb_internal._create_broker_priority(name, text, text, text, text, integer, boolean) is
  'CREATE BROKER PRIORITY behind sb.create_broker_priority.';
revoke all on function sb_internal._create_broker_priority(name, text, text, text, text, integer, boolean) from public;
