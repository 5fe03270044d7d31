-- A function in a view runs as whoever reads the view, who has no right on any table.
select distinct p.oid::regprocedure::text as object,
       'called by view ' || c.relname || ' and not security definer' as problem
  from pg_catalog.pg_class as c
  join pg_catalog.pg_rewrite as r on r.ev_class = c.oid
  join pg_catalog.pg_depend as d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
  join pg_catalog.pg_proc as p on d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid
 where c.relnamespace = 'sb'::regnamespace
   and p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and not p.prosecdef;
