create or replace function sb_internal._clean_bodies(bodies bytea[])
  returns bytea[]
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  refused integer;
begin
  if exists (select 1 from unnest(_clean_bodies.bodies) as b (body) where b.body is null) then
    perform sb_internal._raise('S8433');
  end if;
  select max(octet_length(b.body))
    into refused
    from unnest(_clean_bodies.bodies) as b (body);
  if refused > 268435456 then
    perform sb_internal._raise('S8459', array[refused::text]);
  end if;
  return array(
    select nullif(b.body, '')
      from unnest(_clean_bodies.bodies) with ordinality as b (body, ordinality)
     order by b.ordinality);
end
$$;
comment on function sb_internal._clean_bodies(bytea[]) is
  'Bodies of a batch as they are stored: zero length is null. Errors: S8433 a null among them, S8459 one too large.';
revoke all on function sb_internal._clean_bodies(bytea[]) from public;
