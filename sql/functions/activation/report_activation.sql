create or replace function sb.report_activation(activator text, tasks jsonb, monitors jsonb)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._report_activation(current_user, report_activation.activator, report_activation.tasks,
    report_activation.monitors);
end;
comment on function sb.report_activation(text, jsonb, jsonb) is
  'For activators: replaces what sb.dm_broker_activated_tasks shows of this activator by tasks ([{pid, queue_id, procedure_name, execute_as, age}], age in seconds) and brings sb.dm_broker_queue_monitors up to date with monitors ([{queue_id, state, empty_age, activated_age}]). For show only. Admins only. Locks: those rows.';
revoke all on function sb.report_activation(text, jsonb, jsonb) from public;
