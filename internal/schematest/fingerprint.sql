-- Every catalog row of what is in sb and sb_internal, less what a mere look at the data changes. Rows keep their oids:
-- a replayed source must replace, not drop and create.
-- Node trees are shown as SQL, since they say where in the file a thing stood.
select format('function %s %s %s %s', p.oid::regprocedure, to_jsonb(p) - '{prosqlbody,proargdefaults}'::text[],
         pg_get_function_arguments(p.oid), pg_get_function_sqlbody(p.oid))
  from pg_proc as p
 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
 union all
select format('relation %s %s %s', c.oid::regclass,
         to_jsonb(c) - '{relacl,relfilenode,relpages,reltuples,relallvisible,relallfrozen,relfrozenxid,relminmxid}'::text[],
         -- Absent rights and the default written out are the same.
         coalesce(c.relacl, acldefault((case c.relkind when 'S' then 's' else 'r' end)::"char", c.relowner)))
  from pg_class as c
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
 union all
select format('column %s.%s %s', a.attrelid::regclass, a.attname, to_jsonb(a) - 'attmissingval')
  from pg_attribute as a
  join pg_class as c on c.oid = a.attrelid
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
 union all
select format('view %s %s', r.ev_class::regclass, pg_get_viewdef(r.ev_class))
  from pg_rewrite as r
  join pg_class as c on c.oid = r.ev_class
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
 union all
select format('type %s %s', t.oid::regtype, to_jsonb(t))
  from pg_type as t
 where t.typnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
 union all
select format('constraint %s %s', c.conname, to_jsonb(c))
  from pg_constraint as c
 where c.connamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
 union all
select format('trigger %s %s', t.tgname, pg_get_triggerdef(t.oid))
  from pg_trigger as t
  join pg_class as c on c.oid = t.tgrelid
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
 union all
select format('schema %s %s', n.nspname, to_jsonb(n))
  from pg_namespace as n
 union all
select format('default rights %s', to_jsonb(d))
  from pg_default_acl as d
 union all
select format('comment %s', to_jsonb(d))
  from pg_description as d
 where d.objoid >= 16384
 union all
select format('right %s', to_jsonb(d))
  from pg_shdepend as d
 where d.dbid = (select b.oid from pg_database as b where b.datname = current_database())
 order by 1
