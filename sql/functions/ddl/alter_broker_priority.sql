create or replace function sb.alter_broker_priority(
  name text,
  contract_name text default null,
  local_service_name text default null,
  remote_service_name text default null,
  priority_level integer default null
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_broker_priority(
    current_user, alter_broker_priority.name, alter_broker_priority.contract_name,
    alter_broker_priority.local_service_name, alter_broker_priority.remote_service_name,
    alter_broker_priority.priority_level
  );
end;
comment on function sb.alter_broker_priority(text, text, text, text, integer) is
  'ALTER BROKER PRIORITY: null leaves a criterion as it is; endpoints that exist keep what they have (R-100, R-101). Admins only. Errors: 42501, 42704, S8423, 42710, 22023. Locks: the catalog.';
revoke all on function sb.alter_broker_priority(text, text, text, text, integer) from public;
