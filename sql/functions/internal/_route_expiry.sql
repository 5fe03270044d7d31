create or replace function sb_internal._route_expiry(lifetime interval)
  returns timestamptz
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _route_expiry.lifetime <= interval '0' or extract(epoch from _route_expiry.lifetime) > 2147483647 then
    perform sb_internal._raise('S9746', array[_route_expiry.lifetime::text]);
  end if;
  return sb_internal._now() + _route_expiry.lifetime;
end
$$;
comment on function sb_internal._route_expiry(interval) is
  'When a route with this lifetime expires, null for never. Error S9746 unless it is above 0 and at most 2147483647 seconds (R-083).';
revoke all on function sb_internal._route_expiry(interval) from public;
