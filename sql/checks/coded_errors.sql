-- Callers tell errors apart by their code. _raise knows the codes; steps that run with the caller's rights,
-- and so cannot call it, name theirs.
select p.oid::regprocedure::text as object,
       'raises an error without a code' as problem
  from pg_catalog.pg_proc as p
 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and p.prosrc ~* '\mraise\s+(exception\s+)?''';
