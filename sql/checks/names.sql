-- Constraints and indexes say in their name what they are of; times carry their zone; names are compared
-- byte for byte.
select c.conrelid::regclass::text || '.' || c.conname as object,
       'constraint not named <table>_<what>_{pkey,key,fkey,check}' as problem
  from pg_catalog.pg_constraint as c
  join pg_catalog.pg_class as r on r.oid = c.conrelid
 where c.connamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and r.relname <> 'schema_migrations'
   and c.contype in ('p', 'u', 'f', 'c')
   and c.conname !~ ('^' || r.relname || '_.*' || case c.contype
         when 'p' then 'pkey'
         when 'u' then '_key'
         when 'f' then '_fkey'
         else '_check'
       end || '$')
 union all
select i.indexrelid::regclass::text,
       'index not named <table>_<what>_idx'
  from pg_catalog.pg_index as i
  join pg_catalog.pg_class as x on x.oid = i.indexrelid
  join pg_catalog.pg_class as r on r.oid = i.indrelid
 where r.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and not exists (
     select 1
       from pg_catalog.pg_constraint as c
      where c.conindid = i.indexrelid)
   and x.relname !~ ('^' || r.relname || '_.*_idx$')
 union all
select a.attrelid::regclass::text || '.' || a.attname,
       case when a.atttypid = 'timestamp'::regtype then 'timestamp without time zone' else 'name not collated "C"' end
  from pg_catalog.pg_attribute as a
  join pg_catalog.pg_class as r on r.oid = a.attrelid
 where r.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and r.relkind = 'r'
   and r.relname not in ('schema_migrations', 'meta')
   and a.attnum > 0
   and (a.atttypid = 'timestamp'::regtype
     or a.attname ~ '(^|_)name$' and a.atttypid = 'text'::regtype and r.relname <> 'activated_task'
        and a.attcollation <> (
          select o.oid
            from pg_catalog.pg_collation as o
           where o.collname = 'C'
             and o.collnamespace = 'pg_catalog'::regnamespace));
