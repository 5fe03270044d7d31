create or replace function sb.alter_route(
  name text,
  address text default null,
  service_name text default null,
  broker_instance text default null,
  lifetime interval default null,
  mirror_address text default null
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_route(
    current_user, alter_route.name, alter_route.address, alter_route.service_name,
    alter_route.broker_instance, alter_route.lifetime, alter_route.mirror_address
  );
end;
comment on function sb.alter_route(text, text, text, text, interval, text) is
  'ALTER ROUTE: null leaves a setting as it is, so that a wildcard never comes back; lifetime counts from now and revives an expired route (R-084, R-085). For the owner and admins. Errors: 42501, 42704 and those of sb.create_route. Locks: the catalog.';
revoke all on function sb.alter_route(text, text, text, text, interval, text) from public;
