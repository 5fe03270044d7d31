-- Rights belong to the real current_user, which only an invoker function sees. And what it calls inside has to
-- be bound at creation, by an SQL-standard body: its caller has no USAGE on sb_internal.
select p.oid::regprocedure::text as object,
       case when p.prosecdef then 'verb that is security definer' else 'looks up what its caller cannot name' end as problem
  from pg_catalog.pg_proc as p
 where p.pronamespace = 'sb'::regnamespace
   and (p.prosecdef or p.prosqlbody is null and p.prosrc ~ 'sb_internal\s*\.');
