-- SQL made of strings: only where there is no other way, with names quoted by %I, quote_ident or as the text of a
-- regclass or regprocedure, numbers by their type, values as parameters. A new one comes into this list when somebody
-- has looked.
with dynamic as (
  select p.oid, p.proname, pg_catalog.regexp_replace(p.prosrc, '--[^\n]*', '', 'g') as body
    from pg_catalog.pg_proc as p
   where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
), listed (name, times) as (
  values
    -- Grants and sequences take no parameters.
    ('_sync_privileges', 4), ('_open_state_table', 1), ('_close_state_table', 1), ('_queue_sequences', 1),
    ('_drop_stale_sequences', 1),
    -- The planner's estimate for the number of a queue.
    ('_queue_statistics', 1),
    -- An extension's function, in whatever schema.
    ('_json_schema_is_valid', 1),
    -- With the caller's rights: a validator's quoted name, the caller's own columns and tables.
    ('_run_validator', 2), ('_make_state_table', 1), ('_drop_state_table', 1)
), counted as (
  select d.oid, d.proname,
         (select pg_catalog.count(*)
            from pg_catalog.regexp_matches(d.body, '\mexecute\s+(?!on\M)', 'gi')) as times
    from dynamic as d
)
select c.oid::regprocedure::text as object,
       'executes SQL made of strings in ' || c.times || ' places' as problem
  from counted as c
  left join listed as l on l.name = c.proname
 where c.times <> coalesce(l.times, 0);
