create or replace function sb_internal._sync_privileges(roles name[])
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  role name;
  grantee text;
  grantee_oid oid;
  is_full boolean;
  is_any boolean;
  wanted oid[];
  list text;
begin
  foreach role in array _sync_privileges.roles loop
    grantee := case when role = 'public' then 'public' else quote_ident(role) end;
    grantee_oid := case when role = 'public' then 0 else to_regrole(grantee) end;
    -- A role that is gone has nothing; the owner of sb has everything.
    continue when grantee_oid is null
      or grantee_oid = (select n.nspowner from pg_namespace as n where n.nspname = 'sb');

    select exists (select 1 from sb_internal.broker as b where role = any (b.admins))
        or exists (select 1 from sb_internal.message_type as t where t.owner = role)
        or exists (select 1 from sb_internal.contract as c where c.owner = role)
        or exists (select 1 from sb_internal.queue as q where q.owner = role)
        or exists (select 1 from sb_internal.service as s where s.owner = role)
        or exists (select 1 from sb_internal.route as r where r.owner = role)
      into is_full;
    -- That the system's own contracts are for everybody gives nobody the verbs.
    select is_full
        or exists (
             select 1
               from sb_internal.contract as c
              where role = any (c.referencers)
                and c.service_contract_id >= 65536)
        or exists (select 1 from sb_internal.queue as q where role = any (q.receivers))
        or exists (select 1 from sb_internal.service as s where role = any (s.senders))
      into is_any;
    wanted := array(
      select g.routine::oid
        from sb_internal._grantable(is_full) as g (routine)
       where is_any);

    select string_agg(w.oid::regprocedure::text, ', ')
      into list
      from unnest(wanted) as w (oid)
      join pg_proc as p on p.oid = w.oid
     where not exists (select 1 from aclexplode(p.proacl) as a where a.grantee = grantee_oid);
    if list is not null then
      execute format('grant execute on function %s to %s', list, grantee);
    end if;
    select string_agg(p.oid::regprocedure::text, ', ')
      into list
      from pg_proc as p
     where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
       and p.oid <> all (wanted)
       and exists (select 1 from aclexplode(p.proacl) as a where a.grantee = grantee_oid);
    if list is not null then
      execute format('revoke execute on function %s from %s', list, grantee);
    end if;

    select string_agg(c.oid::regclass::text, ', ')
      into list
      from pg_class as c
     where c.relnamespace = 'sb'::regnamespace
       and c.relkind = 'v'
       and is_any <> exists (select 1 from aclexplode(c.relacl) as a where a.grantee = grantee_oid);
    if list is not null then
      execute format(case when is_any then 'grant select on %s to %s' else 'revoke select on %s from %s' end,
        list, grantee);
    end if;
    if is_any <> exists (
      select 1
        from pg_namespace as n
       cross join lateral aclexplode(n.nspacl) as a
       where n.nspname = 'sb'
         and a.grantee = grantee_oid)
    then
      execute format(case when is_any then 'grant usage on schema sb to %s' else 'revoke usage on schema sb from %s' end,
        grantee);
    end if;
  end loop;
end
$$;
comment on function sb_internal._sync_privileges(name[]) is
  'Brings the SQL privileges of roles in line with the rights they hold in the catalog: USAGE on sb, EXECUTE on what _grantable lists, SELECT on the views; nothing when they hold none. The caller holds the catalog lock, for PostgreSQL fails on privileges that two transactions change.';
revoke all on function sb_internal._sync_privileges(name[]) from public;
