create or replace function sb_internal._route_changed(event text, r sb_internal.route)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if r.address = 'LOCAL' then
    perform sb_internal._deliver_now(null, r.remote_service_name);
  end if;
  perform sb_internal._announce(_route_changed.event, 'route', r.name);
end
$$;
comment on function sb_internal._route_changed(text, sb_internal.route) is
  'Lets messages take a new route: local ones at once, the others by the activator, which is told.';
revoke all on function sb_internal._route_changed(text, sb_internal.route) from public;
