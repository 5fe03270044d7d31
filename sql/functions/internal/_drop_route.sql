create or replace function sb_internal._drop_route(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('route', _drop_route.name, _drop_route.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_route.caller, object.owner, 'drop route ' || _drop_route.name);
  delete from sb_internal.route as r
   where r.route_id = object.id;
  perform sb_internal._sync_privileges(array[object.owner]);
  perform sb_internal._announce('route_dropped', 'route', _drop_route.name);
end
$$;
comment on function sb_internal._drop_route(name, text, boolean) is
  'DROP ROUTE behind sb.drop_route.';
revoke all on function sb_internal._drop_route(name, text, boolean) from public;
