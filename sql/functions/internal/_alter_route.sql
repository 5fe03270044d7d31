create or replace function sb_internal._alter_route(
  caller name,
  name text,
  address text,
  service_name text,
  broker_instance text,
  lifetime interval,
  mirror_address text
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
  r sb_internal.route;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('route', _alter_route.name);
  perform sb_internal._require_owner(_alter_route.caller, object.owner, 'alter route ' || _alter_route.name);
  if num_nonnulls(_alter_route.address, _alter_route.service_name, _alter_route.broker_instance,
    _alter_route.lifetime, _alter_route.mirror_address) = 0
  then
    perform sb_internal._raise('22023', array['nothing to change for route ' || _alter_route.name]);
  end if;
  update sb_internal.route as o
     set address = coalesce(_alter_route.address, o.address),
         remote_service_name = coalesce(_alter_route.service_name, o.remote_service_name),
         broker_instance = coalesce(lower(_alter_route.broker_instance), o.broker_instance),
         lifetime = coalesce(sb_internal._route_expiry(_alter_route.lifetime), o.lifetime),
         mirror_address = coalesce(_alter_route.mirror_address, o.mirror_address)
   where o.route_id = object.id
  returning o.* into r;
  perform sb_internal._check_route(r);
  perform sb_internal._route_changed('route_altered', r);
end
$$;
comment on function sb_internal._alter_route(name, text, text, text, text, interval, text) is
  'ALTER ROUTE behind sb.alter_route.';
revoke all on function sb_internal._alter_route(name, text, text, text, text, interval, text) from public;
