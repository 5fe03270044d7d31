create or replace function sb_internal._report_activation(caller name, activator text, tasks jsonb, monitors jsonb)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  reported_at timestamptz := sb_internal._now();
begin
  perform sb_internal._require_admin(_report_activation.caller, 'run an activator');

  delete from sb_internal.activated_task as t
   where t.activator = _report_activation.activator
     and t.pid <> all (array(
           select r.pid
             from jsonb_to_recordset(_report_activation.tasks) as r (pid integer)));
  insert into sb_internal.activated_task as t (pid, queue_id, procedure_name, execute_as, activator, started_at)
  select r.pid, r.queue_id, r.procedure_name, r.execute_as, _report_activation.activator,
         reported_at - r.age * interval '1 second'
    from jsonb_to_recordset(_report_activation.tasks)
           as r (pid integer, queue_id integer, procedure_name text, execute_as name, age double precision)
    join sb_internal.queue as q on q.queue_id = r.queue_id
   order by r.pid
  on conflict on constraint activated_task_pkey do update
     set queue_id = excluded.queue_id,
         procedure_name = excluded.procedure_name,
         execute_as = excluded.execute_as,
         activator = excluded.activator,
         started_at = excluded.started_at;

  -- In id order, for two activators may report at once. That this one has nothing to do does not make a
  -- queue inactive on which another one's readers are busy.
  insert into sb_internal.queue_monitor as m (queue_id, state, last_empty_rowset_time, last_activated_time)
  select r.queue_id, r.state, reported_at - r.empty_age * interval '1 second', reported_at - r.activated_age * interval '1 second'
    from jsonb_to_recordset(_report_activation.monitors)
           as r (queue_id integer, state text, empty_age double precision, activated_age double precision)
    join sb_internal.queue as q on q.queue_id = r.queue_id
   where not q.has_activation_event
     and (r.state <> 'INACTIVE'
       or r.queue_id not in (select h.queue_id from sb_internal._held_readers() as h))
   order by r.queue_id
  on conflict on constraint queue_monitor_pkey do update
     set state = excluded.state,
         last_empty_rowset_time = greatest(m.last_empty_rowset_time, excluded.last_empty_rowset_time),
         last_activated_time = greatest(m.last_activated_time, excluded.last_activated_time);
end
$$;
comment on function sb_internal._report_activation(name, text, jsonb, jsonb) is
  'What an activator does, behind sb.report_activation.';
revoke all on function sb_internal._report_activation(name, text, jsonb, jsonb) from public;
