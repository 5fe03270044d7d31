-- An inner function with an argument caller believes it. So whatever names it with the owner's rights and can be
-- run by others, a verb or a view, has to hand over current_user; and nothing outside of sb does so at all.
with inner_call as (
  select p.proname, d.classid, d.objid,
         case
           when d.classid = 'pg_proc'::regclass then pg_catalog.pg_get_function_sqlbody(d.objid)
           when d.classid = 'pg_rewrite'::regclass then (
             select pg_catalog.pg_get_viewdef(r.ev_class)
               from pg_catalog.pg_rewrite as r
              where r.oid = d.objid)
         end as body,
         coalesce(
           (select c.pronamespace
              from pg_catalog.pg_proc as c
             where d.classid = 'pg_proc'::regclass
               and c.oid = d.objid),
           (select c.relnamespace
              from pg_catalog.pg_rewrite as r
              join pg_catalog.pg_class as c on c.oid = r.ev_class
             where d.classid = 'pg_rewrite'::regclass
               and r.oid = d.objid)) as namespace
    from pg_catalog.pg_proc as p
    join pg_catalog.pg_depend as d on d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid
   where p.pronamespace = 'sb_internal'::regnamespace
     and d.deptype = 'n'
     and p.proargnames[1] = 'caller'
     and p.proargtypes[0] = 'name'::regtype
)
select pg_catalog.pg_describe_object(i.classid, i.objid, 0) as object,
       case
         when i.namespace is distinct from 'sb'::regnamespace
           and (i.namespace, i.objid) is distinct from
               ('sb_internal'::regnamespace::oid, 'sb_internal._settle(sb_internal.unsettled)'::regprocedure::oid)
           then 'is no verb and no view, and calls ' || i.proname
         else 'tells ' || i.proname || ' of another caller than current_user'
       end as problem
  from inner_call as i
 where i.namespace is distinct from 'sb'::regnamespace
       and (i.namespace, i.objid) is distinct from
           ('sb_internal'::regnamespace::oid, 'sb_internal._settle(sb_internal.unsettled)'::regprocedure::oid)
    or pg_catalog.regexp_replace(i.body, i.proname || '\(CURRENT_USER[,)]', '', 'g') ~ (i.proname || '\(');
