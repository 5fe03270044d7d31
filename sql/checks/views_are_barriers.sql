-- Without security_barrier a cheap function in the reader's query sees the rows that the view hides.
select c.oid::regclass::text as object,
       'view without security_barrier' as problem
  from pg_catalog.pg_class as c
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and c.relkind in ('v', 'm')
   and not coalesce('security_barrier=true' = any (c.reloptions), false);
