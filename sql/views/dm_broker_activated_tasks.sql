create or replace view sb.dm_broker_activated_tasks
  with (security_barrier = true)
as
select t.pid as spid,
       t.queue_id,
       q.name as queue_name,
       t.procedure_name,
       t.execute_as,
       t.activator,
       t.started_at
  from sb_internal.activated_task as t
  join sb_internal.queue as q on q.queue_id = t.queue_id
 where exists (
         select 1
           from pg_catalog.pg_stat_get_activity(t.pid) as a
          where a.datid = (
                  select d.oid
                    from pg_catalog.pg_database as d
                   where d.datname = pg_catalog.current_database())
            -- Hidden, hence null, from a reader without rights on that session.
            and (a.backend_start is null or a.backend_start <= t.started_at))
   and q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.dm_broker_activated_tasks is
  'What activators run right now, of queues that the reader may receive from; spid is the pid of the backend.';
