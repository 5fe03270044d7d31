create or replace function sb_internal._create_route(
  caller name,
  name text,
  address text,
  service_name text,
  broker_instance text,
  lifetime interval,
  mirror_address text,
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
  r sb_internal.route;
begin
  perform sb_internal._require_admin(_create_route.caller, 'create routes');
  perform sb_internal._require_name(_create_route.name, 'route', 128);
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('route', _create_route.name,
    exists (select 1 from sb_internal.route as o where o.name = _create_route.name),
    _create_route.if_not_exists)
  then
    return;
  end if;
  r.name := _create_route.name;
  r.owner := _create_route.caller;
  r.remote_service_name := _create_route.service_name;
  r.broker_instance := lower(_create_route.broker_instance);
  r.lifetime := sb_internal._route_expiry(_create_route.lifetime);
  r.address := _create_route.address;
  r.mirror_address := _create_route.mirror_address;
  perform sb_internal._check_route(r);
  r.route_id := nextval('sb_internal.route_id')::integer;
  insert into sb_internal.route
  select r.*
      on conflict on constraint route_name_key do nothing;
  perform sb_internal._route_changed('route_created', r);
end
$$;
comment on function sb_internal._create_route(name, text, text, text, text, interval, text, boolean) is
  'CREATE ROUTE behind sb.create_route.';
revoke all on function sb_internal._create_route(name, text, text, text, text, interval, text, boolean) from public;
