-- Inner functions believe their argument caller, and tables hold everybody's messages: nobody but the owner
-- has any right on the schema, a table or a sequence.
select n.nspname::text as object,
       'granted to ' || a.grantee::regrole::text as problem
  from pg_catalog.pg_namespace as n
 cross join lateral pg_catalog.aclexplode(n.nspacl) as a
 where n.nspname = 'sb_internal'
   and a.grantee <> n.nspowner
 union all
select c.oid::regclass::text,
       'granted to ' || a.grantee::regrole::text
  from pg_catalog.pg_class as c
 cross join lateral (
   select x.grantee
     from pg_catalog.aclexplode(c.relacl) as x
    union all
   select x.grantee
     from pg_catalog.pg_attribute as t
    cross join lateral pg_catalog.aclexplode(t.attacl) as x
    where t.attrelid = c.oid
 ) as a
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and c.relkind <> 'v'
   and a.grantee <> c.relowner;
