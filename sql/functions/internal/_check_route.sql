create or replace function sb_internal._check_route(r sb_internal.route)
  returns void
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  clause record;
begin
  for clause in
    select c.name, c.value, c.max_length
      from (values
        ('address', coalesce(r.address, ''), 256),
        ('service_name', r.remote_service_name, 256),
        ('broker_instance', r.broker_instance, 128),
        ('mirror_address', r.mirror_address, 256)
      ) as c (name, value, max_length)
  loop
    if clause.value = '' then
      perform sb_internal._raise('S9659', array[clause.name]);
    elsif char_length(clause.value) > clause.max_length then
      perform sb_internal._raise('S9660', array[clause.name, clause.max_length::text]);
    end if;
  end loop;
  if r.address <> 'LOCAL' and r.address !~ '^remote://[^/[:space:]]+$' then
    perform sb_internal._raise('S9744', array[r.address]);
  end if;
  if r.broker_instance is not null and r.remote_service_name is null then
    perform sb_internal._raise('S9662');
  end if;
  if r.mirror_address is null then
    return;
  end if;
  if r.remote_service_name is null or r.broker_instance is null then
    perform sb_internal._raise('S9661');
  elsif r.mirror_address !~ '^remote://[^/[:space:]]+$' then
    perform sb_internal._raise('S9743', array[r.mirror_address]);
  elsif r.mirror_address = r.address then
    perform sb_internal._raise('S9747');
  elsif r.address = 'LOCAL' then
    perform sb_internal._raise('22023', array['a LOCAL route takes no mirror address']);
  end if;
end
$$;
comment on function sb_internal._check_route(sb_internal.route) is
  'Checks the clauses of a route (R-079 to R-082). Errors: S9659 empty, S9660 too long, S9661, S9662, S9743, S9744, S9747, 22023.';
revoke all on function sb_internal._check_route(sb_internal.route) from public;
