-- Tables, types, sequences and triggers, each as one block of statements, from the catalogs. Views, functions and
-- rights are left out: sql/ is their only source. So is golang-migrate's table.
with relation as (
  select c.oid,
         c.relkind,
         c.oid::regclass::text as name,
         c.reloptions
    from pg_class as c
   where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
     and c.relname <> 'schema_migrations'
     and c.relkind not in ('i', 'v')
), described (what, classid, oid, subid, kind, name) as (
  -- Everything that may have a comment; what is the block it belongs to.
  select n.nspname::text, 'pg_namespace'::regclass, n.oid, 0, 'schema', n.nspname::text
    from pg_namespace as n
   where n.nspname in ('sb', 'sb_internal')
   union all
  select r.name, 'pg_class'::regclass, r.oid, 0,
         case r.relkind when 'S' then 'sequence' when 'r' then 'table' else r.relkind::text end, r.name
    from relation as r
   where r.relkind <> 'c'
   union all
  select r.name, 'pg_type'::regclass, t.oid, 0, 'type', r.name
    from relation as r
    join pg_type as t on t.typrelid = r.oid
   where r.relkind = 'c'
   union all
  select r.name, 'pg_class'::regclass, r.oid, a.attnum, 'column', r.name || '.' || quote_ident(a.attname)
    from relation as r
    join pg_attribute as a on a.attrelid = r.oid
   where a.attnum > 0
   union all
  select r.name, 'pg_constraint'::regclass, c.oid, 0, 'constraint', format('%I on %s', c.conname, r.name)
    from relation as r
    join pg_constraint as c on c.conrelid = r.oid
   union all
  select r.name, 'pg_class'::regclass, i.indexrelid, 0, 'index', i.indexrelid::regclass::text
    from relation as r
    join pg_index as i on i.indrelid = r.oid
   union all
  select r.name, 'pg_trigger'::regclass, t.oid, 0, 'trigger', format('%I on %s', t.tgname, r.name)
    from relation as r
    join pg_trigger as t on t.tgrelid = r.oid
), part (what, place, line) as (
  select n.nspname::text, 1, format('create schema %I;', n.nspname)
    from pg_namespace as n
   where n.nspname in ('sb', 'sb_internal')
   union all
  select r.name, 1,
         format(E'create %s %s (\n%s\n)%s;',
           case r.relkind when 'r' then 'table' when 'c' then 'type' else format('relation of kind %s', r.relkind) end,
           r.name || case r.relkind when 'c' then ' as' else '' end,
           columns.list,
           ' with (' || array_to_string(r.reloptions, ', ') || ')')
    from relation as r
   cross join lateral (
     select string_agg(l.line, E',\n' order by l.place, l.name collate "C") as list
       from (
         select a.attnum as place,
                a.attname::text as name,
                format('  %I %s%s%s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                  -- Not the type's own collation, which is what a column has that says nothing.
                  case when a.attcollation <> t.typcollation then ' collate ' || a.attcollation::regcollation end,
                  case when a.attstorage <> t.typstorage then format(' storage %s', a.attstorage) end,
                  case when a.attcompression <> '' then format(' compression %s', a.attcompression) end,
                  case when a.attnotnull then ' not null' end,
                  case a.attgenerated when '' then ' default ' else ' generated ' end || pg_get_expr(d.adbin, d.adrelid)) as line
           from pg_attribute as a
           join pg_type as t on t.oid = a.atttypid
           left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
          where a.attrelid = r.oid
            and a.attnum > 0
            and not a.attisdropped
          union all
         select 10000,
                c.conname::text,
                format('  constraint %I %s', c.conname, pg_get_constraintdef(c.oid))
           from pg_constraint as c
          where c.conrelid = r.oid
            and c.contype <> 'n' -- "not null", which has a row since PostgreSQL 18
       ) as l
   ) as columns
   where r.relkind <> 'S'
   union all
  select r.name, 1,
         format('create sequence %s as %s increment %s minvalue %s maxvalue %s start %s cache %s%s%s;', r.name,
           s.seqtypid::regtype, s.seqincrement, s.seqmin, s.seqmax, s.seqstart, s.seqcache,
           case when s.seqcycle then ' cycle' end,
           ' owned by ' || d.refobjid::regclass || '.' || quote_ident(a.attname))
    from relation as r
    join pg_sequence as s on s.seqrelid = r.oid
    left join pg_depend as d on d.classid = 'pg_class'::regclass and d.objid = r.oid
     and d.refclassid = 'pg_class'::regclass and d.deptype = 'a'
    left join pg_attribute as a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
   union all
  select r.name, 2, pg_get_indexdef(i.indexrelid) || ';'
    from relation as r
    join pg_index as i on i.indrelid = r.oid
   where not exists (select 1 from pg_constraint as c where c.conindid = i.indexrelid and c.conrelid = i.indrelid)
   union all
  select r.name, 3, pg_get_triggerdef(t.oid) || ';'
    from relation as r
    join pg_trigger as t on t.tgrelid = r.oid
   where not t.tgisinternal
   union all
  select x.what, 4, format(E'comment on %s %s is\n  %L;', x.kind, x.name, d.description)
    from described as x
    join pg_description as d on d.classoid = x.classid and d.objoid = x.oid and d.objsubid = x.subid
   union all
  select r.name, 5, format('-- policy %I', p.polname)
    from relation as r
    join pg_policy as p on p.polrelid = r.oid
)
select string_agg(p.line, E'\n' order by p.place, p.line collate "C") || E'\n'
  from part as p
 group by p.what
 order by p.what collate "C"
