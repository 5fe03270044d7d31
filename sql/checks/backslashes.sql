-- In a literal that is neither e'…' nor $$…$$ a backslash means what the caller's standard_conforming_strings says.
select p.oid::regprocedure::text as object,
       'backslash in ' || pg_catalog.left(m.literal[1], 40) as problem
  from pg_catalog.pg_proc as p
 cross join lateral pg_catalog.regexp_matches(
         pg_catalog.regexp_replace(pg_catalog.regexp_replace(p.prosrc, '--[^\n]*', '', 'g'), '\$re\$.*?\$re\$', '', 'g'),
         $re$((?:\me)?'(?:[^']|'')*')$re$, 'g') as m (literal)
 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and p.prosqlbody is null
   and m.literal[1] ~ $re$^'.*\\$re$;
