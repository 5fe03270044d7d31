create or replace function sb.create_route(
  name text,
  address text,
  service_name text default null,
  broker_instance text default null,
  lifetime interval default null,
  mirror_address text default null,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_route(
    current_user, create_route.name, create_route.address, create_route.service_name,
    create_route.broker_instance, create_route.lifetime, create_route.mirror_address,
    create_route.if_not_exists
  );
end;
comment on function sb.create_route(text, text, text, text, interval, text, boolean) is
  'CREATE ROUTE. address: LOCAL, or remote://<server>, a connection named in the activator''s configuration; null service_name and broker_instance match any (R-078 to R-083). Admins only. Errors: 42501, 42602 name, 42710 exists, S9659, S9660, S9661, S9662, S9743, S9744, S9746, S9747, 22023. Locks: the catalog.';
revoke all on function sb.create_route(text, text, text, text, interval, text, boolean) from public;
