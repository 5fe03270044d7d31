create or replace function sb_internal._find_target(far_service text)
  returns sb_internal.service_status
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  target sb_internal.service_status;
begin
  -- A service being dropped is then simply missing.
  if sb_internal._share_names(_find_target.far_service, null) then
    perform 1
       from sb_internal.service as s
      where s.name = _find_target.far_service
        for share;  -- also against alter_service: see _hold_service
  end if;
  select t.*
    into target
    from sb_internal.service_status as t
   where t.service_name = _find_target.far_service;
  return target;
end
$$;
comment on function sb_internal._find_target(text) is
  'The service that an initiator talks to, for _create_target, kept from being dropped; null when there is none.';
revoke all on function sb_internal._find_target(text) from public;
