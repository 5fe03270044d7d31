create or replace function sb_internal._activation_plan(caller name, queue_names text[])
  returns table (queue_id integer, queue_name text, is_on boolean, max_readers integer, surplus_readers integer,
    procedure_name text, procedure_version text, is_procedure boolean, statement text, execute_as name,
    may_become boolean)
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_activation_plan.caller, 'run an activator');
  return query
    select q.queue_id, q.name::text, b.is_broker_enabled and sb_internal._queue_is_on(q.queue_id), q.max_readers,
           coalesce(h.surplus, 0), q.activation_procedure, p.version, p.is_procedure, p.statement,
           q.execute_as,
           q.execute_as is null or coalesce((
             select sb_internal._may_become(_activation_plan.caller, r.rolname)
               from pg_roles as r
              where r.rolname = q.execute_as), false)
      from (
        select o.queue_id, o.name, o.max_readers, a.activation_procedure, a.execute_as
          from sb_internal.queue as o
          left join sb_internal.queue as a on a.queue_id = o.queue_id and a.is_activation_enabled
         where a.activation_procedure is not null
            or o.name = any (_activation_plan.queue_names)) as q
      join sb_internal.broker as b on b.singleton
      left join (
        select r.queue_id, count(*)::integer as surplus
          from sb_internal._held_readers() as r
          join sb_internal.queue as o on o.queue_id = r.queue_id
         where r.slot >= o.max_readers
         group by r.queue_id) as h on h.queue_id = q.queue_id
      left join lateral (
        -- The version changes with every create or replace, so that a mended procedure is tried at once.
        select f.oid || ':' || f.xmin::text as version,
               f.prokind = 'p' as is_procedure,
               format(case f.prokind when 'p' then 'call %I.%I()' else 'select %I.%I()' end, n.nspname, f.proname)
                 as statement
          from pg_proc as f
          join pg_namespace as n on n.oid = f.pronamespace
         where f.oid = to_regprocedure(q.activation_procedure || '()')) as p on true
     order by q.queue_id;
end
$$;
comment on function sb_internal._activation_plan(name, text[]) is
  'What an activator has to serve, behind sb.activation_plan.';
revoke all on function sb_internal._activation_plan(name, text[]) from public;
