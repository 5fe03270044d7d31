create or replace function sb_internal._route(service_name text, broker_instance text)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select r.address
      from sb_internal.route as r
      join sb_internal.broker as b on b.singleton
     where (r.remote_service_name is null or r.remote_service_name = _route.service_name)
       and (r.broker_instance is null or _route.broker_instance is null
         or r.broker_instance = _route.broker_instance)
       and (r.lifetime is null or r.lifetime > sb_internal._now())
       -- A wildcard route to LOCAL leads to this broker only.
       and (r.address <> 'LOCAL'
         or coalesce(r.broker_instance, _route.broker_instance, b.broker_instance::text) = b.broker_instance::text)
     order by (r.remote_service_name is not null and r.broker_instance is not null
                and _route.broker_instance is not null) desc,
              (r.remote_service_name is not null and r.broker_instance is null) desc,
              (r.remote_service_name is not null) desc,
              (r.mirror_address is not null) desc,
              (r.address = 'LOCAL') desc, r.route_id
     limit 1);
end
$$;
comment on function sb_internal._route(text, text) is
  'Address of the route that a dialog to the service takes (R-299 to R-302), null when there is none. Expired routes do not count.';
revoke all on function sb_internal._route(text, text) from public;
