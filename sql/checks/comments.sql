-- Every schema, table, view and function says what it is for.
select p.oid::regprocedure::text as object,
       'without comment' as problem
  from pg_catalog.pg_proc as p
 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and pg_catalog.obj_description(p.oid, 'pg_proc') is null
 union all
select c.oid::regclass::text,
       'without comment'
  from pg_catalog.pg_class as c
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and c.relkind in ('r', 'p', 'v', 'm')
   and c.relname <> 'schema_migrations'
   and pg_catalog.obj_description(c.oid, 'pg_class') is null
 union all
select n.nspname::text,
       'without comment'
  from pg_catalog.pg_namespace as n
 where n.nspname in ('sb', 'sb_internal')
   and pg_catalog.obj_description(n.oid, 'pg_namespace') is null;
