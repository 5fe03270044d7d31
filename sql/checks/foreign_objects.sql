-- Nothing of others hangs on our tables: what does runs or locks when a verb writes. The keys of state tables may,
-- and only on the group.
select t.tgrelid::regclass::text as object,
       'trigger ' || t.tgname || ' is not ours' as problem
  from pg_catalog.pg_trigger as t
  join pg_catalog.pg_class as c on c.oid = t.tgrelid
  join pg_catalog.pg_proc as p on p.oid = t.tgfoid
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and not t.tgisinternal
   and p.pronamespace <> 'sb_internal'::regnamespace
 union all
select c.oid::regclass::text, 'rule ' || r.rulename
  from pg_catalog.pg_rewrite as r
  join pg_catalog.pg_class as c on c.oid = r.ev_class
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and r.rulename <> '_RETURN'
 union all
select c.oid::regclass::text, 'row security'
  from pg_catalog.pg_class as c
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and (c.relrowsecurity or exists (select 1 from pg_catalog.pg_policy as y where y.polrelid = c.oid))
 union all
select i.inhrelid::regclass::text, 'inherits from ' || i.inhparent::regclass::text
  from pg_catalog.pg_inherits as i
  join pg_catalog.pg_class as c on c.oid = i.inhparent
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and c.relkind = 'r'
 union all
select k.conrelid::regclass::text, 'key ' || k.conname || ' references ' || k.confrelid::regclass::text
  from pg_catalog.pg_constraint as k
  join pg_catalog.pg_class as o on o.oid = k.conrelid
  join pg_catalog.pg_class as c on c.oid = k.confrelid
 where k.contype = 'f'
   and c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and o.relnamespace not in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and (k.confrelid <> 'sb.conversation_group'::regclass or k.confdeltype <> 'c');
