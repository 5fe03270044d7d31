-- An argument added with a default makes a second function beside the first, and calls become ambiguous.
select p.proname::text as object,
       pg_catalog.count(*) || ' overloads in ' || p.pronamespace::regnamespace::text as problem
  from pg_catalog.pg_proc as p
 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and (p.pronamespace, p.proname) <> ('sb'::regnamespace::oid, 'send')
 group by p.pronamespace, p.proname
having pg_catalog.count(*) > 1;
