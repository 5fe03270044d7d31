create or replace function sb.activation_plan(queue_names text[] default '{}')
  returns table (queue_id integer, queue_name text, is_on boolean, max_readers integer, surplus_readers integer,
    procedure_name text, procedure_version text, is_procedure boolean, statement text, execute_as name,
    may_become boolean)
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select p.queue_id, p.queue_name, p.is_on, p.max_readers, p.surplus_readers, p.procedure_name,
         p.procedure_version, p.is_procedure, p.statement, p.execute_as, p.may_become
    from sb_internal._activation_plan(current_user, activation_plan.queue_names) as p;
end;
comment on function sb.activation_plan(text[]) is
  'For activators: the queues with activation switched on, and those named, which have handlers of the activator''s own (procedure columns null unless activation is on too). statement runs the activation procedure and is null when that does not exist; may_become says whether the caller may SET ROLE to execute_as; procedure_version changes when it is replaced; surplus_readers counts readers that a lowered max_queue_readers left over (R-048). Admins only. Locks: none.';
revoke all on function sb.activation_plan(text[]) from public;
