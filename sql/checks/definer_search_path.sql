-- A SECURITY DEFINER function that looks names up along the caller's path can be made to run the caller's
-- code. pg_temp must be named, and last: unnamed it comes first.
select p.oid::regprocedure::text as object,
       'security definer without set search_path = pg_catalog, pg_temp' as problem
  from pg_catalog.pg_proc as p
 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and p.prosecdef
   and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false);
