create or replace function sb.create_broker_priority(
  name text,
  contract_name text default null,
  local_service_name text default null,
  remote_service_name text default null,
  priority_level integer default 5,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_broker_priority(
    current_user, create_broker_priority.name, create_broker_priority.contract_name,
    create_broker_priority.local_service_name, create_broker_priority.remote_service_name,
    create_broker_priority.priority_level, create_broker_priority.if_not_exists
  );
end;
comment on function sb.create_broker_priority(text, text, text, text, integer, boolean) is
  'CREATE BROKER PRIORITY: priority 1 to 10 of endpoints created later that match; null is ANY (R-096 to R-100). Admins only. Errors: 42501, 42602 name, 42710 the name or the same three criteria exist, 42704 no such contract, S8423 no such local service, 22023 level. Locks: the catalog.';
revoke all on function sb.create_broker_priority(text, text, text, text, integer, boolean) from public;
