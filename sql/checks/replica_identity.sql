-- A publication FOR ALL TABLES takes these along: without a replica identity every UPDATE and DELETE would fail then.
select c.oid::regclass::text as object,
       'neither primary key nor replica identity full' as problem
  from pg_catalog.pg_class as c
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and c.relkind = 'r'
   and c.relreplident <> 'f'
   and not exists (
     select 1
       from pg_catalog.pg_index as i
      where i.indrelid = c.oid
        and i.indisprimary
        and c.relreplident = 'd');
