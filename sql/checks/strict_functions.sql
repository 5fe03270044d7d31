-- A strict function is silently not called for a null argument. To _settle null means that there is nothing
-- to settle, and not being called is the point.
select p.oid::regprocedure::text as object,
       'strict, yet volatile' as problem
  from pg_catalog.pg_proc as p
 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and p.proisstrict
   and p.provolatile = 'v'
   and p.proname <> '_settle';
