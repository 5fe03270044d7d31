create or replace view sb.dm_broker_queue_monitors
  with (security_barrier = true)
as
select (select d.oid::integer
          from pg_catalog.pg_database as d
         where d.datname = pg_catalog.current_database()) as database_id,
       q.queue_id,
       coalesce(m.state, 'INACTIVE') as state,
       m.last_empty_rowset_time,
       m.last_activated_time,
       (select pg_catalog.count(*)::integer
          from pg_catalog.pg_locks as l
         where l.locktype = 'advisory'
           and l.classid = 8420
           and l.objid::bigint = q.queue_id
           and l.objsubid = 2
           and l.mode = 'ShareLock'
           and l.granted
           and l.database = (
             select d.oid
               from pg_catalog.pg_database as d
              where d.datname = pg_catalog.current_database())) as tasks_waiting,
       q.name as queue_name
  from sb_internal.queue as q
  left join sb_internal.queue_monitor as m on m.queue_id = q.queue_id
 cross join sb_internal.broker as b
 where b.is_broker_enabled
   and (q.is_activation_enabled or q.has_activation_event)
   and q.queue_id = any ((select sb_internal._queues_on())::integer[])
   and q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.dm_broker_queue_monitors is
  'State of activation of queues with activation or a QUEUE_ACTIVATION notification, while they and the broker are on (R-314): INACTIVE, NOTIFIED or RECEIVES_OCCURRING. tasks_waiting counts sessions that announced with sb.start_waiting that they sleep.';
