-- Others have SELECT on views, USAGE on sb and EXECUTE on what _grantable lists, and may not pass it on. Whoever
-- has any of it is in one of the lists of the catalog.
with known (role) as (
  select unnest(b.admins) from sb_internal.broker as b
   union
  select t.owner from sb_internal.message_type as t
   union
  select unnest(c.referencers || c.owner) from sb_internal.contract as c
   union
  select unnest(q.receivers || q.owner) from sb_internal.queue as q
   union
  select unnest(s.senders || s.owner) from sb_internal.service as s
   union
  select r.owner from sb_internal.route as r
), held as (
  select p.oid::regprocedure::text as object, a.grantee, a.privilege_type, a.is_grantable,
         p.oid in (select f.routine::oid from sb_internal._grantable(true) as f (routine)) as is_allowed
    from pg_catalog.pg_proc as p
   cross join lateral pg_catalog.aclexplode(p.proacl) as a
   where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
     and a.grantee <> p.proowner
   union all
  select c.oid::regclass::text, a.grantee, a.privilege_type, a.is_grantable, a.privilege_type = 'SELECT'
    from pg_catalog.pg_class as c
   cross join lateral pg_catalog.aclexplode(c.relacl) as a
   where c.relnamespace = 'sb'::regnamespace
     and c.relkind = 'v'
     and a.grantee <> c.relowner
   union all
  select n.nspname::text, a.grantee, a.privilege_type, a.is_grantable, a.privilege_type = 'USAGE'
    from pg_catalog.pg_namespace as n
   cross join lateral pg_catalog.aclexplode(n.nspacl) as a
   where n.nspname = 'sb'
     and a.grantee <> n.nspowner
)
select h.object,
       h.privilege_type || ' of ' || case h.grantee when 0 then 'public' else h.grantee::regrole::text end
         || case
              when not h.is_allowed then ', which nobody may have'
              when h.is_grantable then ', to be passed on'
              else ', who has no right'
            end as problem
  from held as h
 where not h.is_allowed
    or h.is_grantable
    or not exists (
         select 1
           from known as k
          where case k.role when 'public' then 0 else pg_catalog.to_regrole(pg_catalog.quote_ident(k.role)) end = h.grantee)
 union all
select n.nspname || '.*', 'default privileges'
  from pg_catalog.pg_default_acl as d
  join pg_catalog.pg_namespace as n on n.oid = d.defaclnamespace
 where n.nspname in ('sb', 'sb_internal');
