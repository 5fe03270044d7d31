create or replace view sb.routes
  with (security_barrier = true)
as
select r.name,
       r.route_id,
       pg_catalog.to_regrole(pg_catalog.quote_ident(r.owner))::oid::integer as principal_id,
       r.remote_service_name,
       r.broker_instance,
       r.lifetime,
       r.address,
       r.mirror_address,
       r.owner
  from sb_internal.route as r
 where r.route_id = any ((select sb_internal._visible(current_user, 'route'))::integer[]);
comment on view sb.routes is
  'Routes that the reader owns. lifetime is when the route expires, null for never; an expired one stays here and is not used (R-084).';
