-- A body that is looked up when it runs finds what the path says. Three functions run under the caller's on purpose,
-- with nothing but the caller's rights, and qualify everything of their own.
select p.oid::regprocedure::text as object,
       'looks names up along whatever path' as problem
  from pg_catalog.pg_proc as p
 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and p.prosqlbody is null
   and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false)
   and (p.prosecdef or p.oid not in (
         'sb_internal._run_validator(text, text, bytea[])'::regprocedure,
         'sb_internal._make_state_table(text, text, boolean, boolean)'::regprocedure,
         'sb_internal._drop_state_table(text, boolean)'::regprocedure));
