-- One owner: a definer function of another owner would run with other rights than its neighbours.
select p.oid::regprocedure::text as object,
       'owned by ' || p.proowner::regrole::text as problem
  from pg_catalog.pg_proc as p
  join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
 where n.nspname in ('sb', 'sb_internal')
   and p.proowner <> n.nspowner
 union all
select c.oid::regclass::text,
       'owned by ' || c.relowner::regrole::text
  from pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
 where n.nspname in ('sb', 'sb_internal')
   and c.relowner <> n.nspowner
 union all
select n.nspname::text,
       'owned by ' || n.nspowner::regrole::text
  from pg_catalog.pg_namespace as n
 where n.nspname = 'sb_internal'
   and n.nspowner <> (select o.nspowner from pg_catalog.pg_namespace as o where o.nspname = 'sb');
