-- PUBLIC has what was granted to public as a role, and then nothing outside sb_internal._grantable.
with granted as (
  select exists (select 1 from sb_internal.queue as q where 'public' = any (q.receivers))
      or exists (select 1 from sb_internal.service as s where 'public' = any (s.senders))
      or exists (
           select 1
             from sb_internal.contract as c
            where 'public' = any (c.referencers)
              and c.service_contract_id >= 65536) as is_any
)
select p.oid::regprocedure::text as object,
       'public may execute it' as problem
  from pg_catalog.pg_proc as p
 cross join granted as g
 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and (p.proacl is null or exists (select 1 from pg_catalog.aclexplode(p.proacl) as a where a.grantee = 0))
   and not (g.is_any and p.oid in (select f.routine::oid from sb_internal._grantable(false) as f (routine)))
 union all
select c.oid::regclass::text,
       'public has rights on it'
  from pg_catalog.pg_class as c
 cross join granted as g
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and exists (select 1 from pg_catalog.aclexplode(c.relacl) as a where a.grantee = 0)
   and not (g.is_any and c.relkind = 'v')
 union all
select n.nspname::text,
       'public has rights on it'
  from pg_catalog.pg_namespace as n
 cross join granted as g
 where n.nspname in ('sb', 'sb_internal')
   and exists (select 1 from pg_catalog.aclexplode(n.nspacl) as a where a.grantee = 0)
   and not (g.is_any and n.nspname = 'sb');
