-- The expense-report application: three services in one database.
--
--   employee   hands reports in and is gone when the answer comes; answers are handled by activation (Go)
--   expenses   decides, and asks an approver about what is over the limit (SQL, expenses.process)
--   approver   answers sooner, later or never (Go)
--
-- Runs as the owner of sb, with two variables as psql has them: service is the role that
-- expenses.process runs as, activator the role that the activator logs in as.

-- ---------------------------------------------------------------------------------------------
-- What is said, by whom, and where it arrives.
-- ---------------------------------------------------------------------------------------------

select sb.create_message_type('//expenses/Report', 'VALID_JSON', schema => '{
  "type": "object",
  "required": ["number", "employee", "cost_center", "items"],
  "properties": {
    "number": {"type": "string", "minLength": 1},
    "employee": {"type": "string", "minLength": 1},
    "cost_center": {"type": "string"},
    "items": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["what", "amount", "currency", "receipt"],
        "properties": {
          "what": {"type": "string", "minLength": 1},
          "amount": {"type": "number"},
          "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
          "receipt": {"type": "boolean"}
        }
      }
    }
  }
}');
select sb.create_message_type('//expenses/Approved', 'WELL_FORMED_JSON');
select sb.create_message_type('//expenses/Rejected', 'WELL_FORMED_JSON');
select sb.create_contract('//expenses/Processing',
  sent_by_initiator => '{//expenses/Report}',
  sent_by_target => '{//expenses/Approved, //expenses/Rejected}');

select sb.create_message_type('//approval/Request', 'WELL_FORMED_JSON');
select sb.create_message_type('//approval/Reminder', 'EMPTY');
select sb.create_message_type('//approval/Decision', 'WELL_FORMED_JSON');
select sb.create_contract('//approval/Approval',
  sent_by_initiator => '{//approval/Request, //approval/Reminder}',
  sent_by_target => '{//approval/Decision}');

select sb.create_queue('EmployeeQueue');
select sb.create_queue('ExpenseQueue');
select sb.create_queue('ApproverQueue');
select sb.create_service('//expenses/Employee', 'EmployeeQueue');
select sb.create_service('//expenses/Service', 'ExpenseQueue', '{//expenses/Processing}');
select sb.create_service('//approval/Approver', 'ApproverQueue', '{//approval/Approval}');

-- ---------------------------------------------------------------------------------------------
-- The employees' side.
-- ---------------------------------------------------------------------------------------------

create schema employee;

-- Kept when the conversation has ended: it is the employees' record of what became of their reports.
select sb.create_state_table('employee.submission', $$
  number text not null,
  kind text not null,
  submitted_at timestamptz not null default clock_timestamp(),
  outcome text check (outcome in ('approved', 'rejected', 'failed', 'invalid', 'expired', 'broken')),
  amount numeric,
  detail text,
  error_message text$$, drop_on_end => false);

create function employee.submit(number text, body text, kind text default 'by hand', lifetime interval default null)
  returns uuid
  language plpgsql
as $$
declare
  own_group uuid := gen_random_uuid();
  handle uuid;
begin
  -- The group gets an id of our choice, so that its state can be written at once.
  handle := sb.begin_dialog('//expenses/Employee', '//expenses/Service', '//expenses/Processing',
    related_conversation_group => own_group, lifetime => submit.lifetime);
  insert into employee.submission (conversation_group_id, number, kind)
  values (own_group, submit.number, submit.kind);
  perform sb.send(handle, '//expenses/Report', submit.body);
  perform expenses.trace(submit.number, 'employee', 'reports', 'Report', submit.kind);
  return own_group;
end
$$;
comment on function employee.submit(text, text, text, interval) is
  'Hands in a report and returns the conversation group by which employee.submission will tell the outcome.';

-- ---------------------------------------------------------------------------------------------
-- The expense service.
-- ---------------------------------------------------------------------------------------------

create schema expenses;

-- For the drawing: a notification is delivered when the transaction commits, and never when it does not.
create function expenses.trace(report text, sender text, receiver text, message text, note text default '')
  returns void
  language sql
begin atomic
  select pg_notify('expenses_trace', json_build_object('report', report, 'from', sender, 'to', receiver,
    'message', message, 'note', note, 'at', clock_timestamp())::text);
end;

create table expenses.rate (
  currency text primary key,
  euros numeric not null
);
create table expenses.cost_center (
  number text primary key,
  name text not null,
  spending_limit numeric not null,
  approver text not null,
  decide_within interval not null
);
create table expenses.accepted (
  number text primary key,
  conversation_group_id uuid not null
);
comment on table expenses.accepted is
  'Reports that are approved or wait for a decision. Its key decides which of two copies is the duplicate.';

select sb.create_state_table('expenses.report', $$
  number text not null,
  employee text not null,
  amount numeric,
  status text not null check (status in ('approved', 'rejected', 'failed', 'waiting', 'abandoned')),
  reason text,
  reminders integer not null default 0,
  report_handle uuid not null,
  approval_handle uuid$$, drop_on_end => false);

create function expenses.examine(report jsonb, out verdict text, out reason text, out amount numeric)
  language plpgsql
  stable
as $$
declare
  center expenses.cost_center;
  item record;
begin
  select c.* into center from expenses.cost_center as c where c.number = report ->> 'cost_center';
  if not found then
    verdict := 'failed';
    reason := format('Unknown cost center "%s". Please check the cost center list and resubmit the report.',
      report ->> 'cost_center');
    return;
  end if;
  verdict := 'rejected';
  if jsonb_array_length(report -> 'items') = 0 then
    reason := 'The report has no items.';
    return;
  end if;
  amount := 0;
  for item in
    select i.what, i.amount, i.currency, i.receipt, round(i.amount * r.euros, 2) as euros
      from jsonb_to_recordset(report -> 'items') as i (what text, amount numeric, currency text, receipt boolean)
      left join expenses.rate as r on r.currency = i.currency
  loop
    if item.euros is null then
      reason := format('The currency %s of "%s" is not accepted.', item.currency, item.what);
    elsif item.amount <= 0 then
      reason := format('The amount of "%s" is %s.', item.what, item.amount);
    elsif item.euros > 25 and not item.receipt then
      reason := format('There is no receipt for "%s", %s EUR.', item.what, item.euros);
    end if;
    if reason is not null then
      amount := null;
      return;
    end if;
    amount := amount + item.euros;
  end loop;
  verdict := case when amount > center.spending_limit then 'waiting' else 'approved' end;
end
$$;
comment on function expenses.examine(jsonb) is
  'The rules: failed for what the employee has to correct, rejected, waiting for what the approver has to decide, approved.';

create function expenses.answer(own_group uuid, verdict text, reason text)
  returns void
  language plpgsql
as $$
declare
  state expenses.report;
begin
  update expenses.report as s
     set status = answer.verdict, reason = answer.reason
   where s.conversation_group_id = own_group
  returning s.* into state;
  if verdict = 'failed' then
    perform sb.end_conversation(state.report_handle, 12, answer.reason);
    perform expenses.trace(state.number, 'expenses', 'reports', 'Error 12', 'END with an error');
    return;
  elsif verdict = 'approved' then
    perform sb.send(state.report_handle, '//expenses/Approved',
      jsonb_build_object('number', state.number, 'amount', state.amount));
    perform expenses.trace(state.number, 'expenses', 'reports', 'Approved', state.amount || ' EUR');
  else
    perform sb.send(state.report_handle, '//expenses/Rejected',
      jsonb_build_object('number', state.number, 'reason', answer.reason));
    perform expenses.trace(state.number, 'expenses', 'reports', 'Rejected', answer.reason);
  end if;
  perform sb.end_conversation(state.report_handle);
  perform expenses.trace(state.number, 'expenses', 'reports', 'EndDialog');
end
$$;
comment on function expenses.answer(uuid, text, text) is
  'Writes the verdict down, tells the employee, and ends the dialog with the employee.';

create function expenses.on_report(own_group uuid, handle uuid, report jsonb)
  returns void
  language plpgsql
as $$
declare
  found_out record := expenses.examine(report);
  center expenses.cost_center;
  approval uuid;
begin
  perform expenses.trace(report ->> 'number', 'reports', 'expenses', 'Report', report ->> 'employee');
  if found_out.verdict in ('approved', 'waiting') then
    insert into expenses.accepted (number, conversation_group_id)
    values (report ->> 'number', own_group)
        on conflict do nothing;
    if not found then
      found_out.verdict := 'rejected';
      found_out.reason := format('Report %s was handed in before.', report ->> 'number');
    end if;
  end if;
  insert into expenses.report (conversation_group_id, number, employee, amount, status, report_handle)
  values (own_group, report ->> 'number', report ->> 'employee', found_out.amount, found_out.verdict, handle);
  if found_out.verdict <> 'waiting' then
    perform expenses.answer(own_group, found_out.verdict, found_out.reason);
    return;
  end if;

  -- The approver's answer belongs to the same state: the new dialog joins the group of the report's.
  select c.* into center from expenses.cost_center as c where c.number = report ->> 'cost_center';
  approval := sb.begin_dialog('//expenses/Service', '//approval/Approver', '//approval/Approval',
    related_conversation => handle, lifetime => center.decide_within);
  perform sb.send(approval, '//approval/Request', jsonb_build_object(
    'number', report ->> 'number', 'amount', found_out.amount, 'approver', center.approver));
  perform sb.begin_conversation_timer(approval, interval '0.6 seconds');
  perform expenses.trace(report ->> 'number', 'expenses', 'approvals', 'Request',
    format('%s EUR is over the limit of %s', found_out.amount, center.spending_limit));
  update expenses.report as s
     set approval_handle = approval
   where s.conversation_group_id = own_group;
end
$$;

create function expenses.on_decision(own_group uuid, decision jsonb)
  returns void
  language plpgsql
as $$
begin
  perform expenses.trace(s.number, 'approvals', 'expenses', 'Decision')
     from expenses.report as s
    where s.conversation_group_id = own_group;
  perform expenses.answer(own_group, case when (decision ->> 'approved')::boolean then 'approved' else 'rejected' end,
    decision ->> 'reason');
end
$$;

create function expenses.on_timer(own_group uuid, handle uuid)
  returns void
  language plpgsql
as $$
declare
  state expenses.report;
  deadline timestamptz;
begin
  update expenses.report as s
     set reminders = s.reminders + 1
   where s.conversation_group_id = own_group
  returning s.* into state;
  perform expenses.trace(state.number, 'approvals', 'expenses', 'DialogTimer', 'no decision yet');
  perform sb.send(handle, '//approval/Reminder');
  perform expenses.trace(state.number, 'expenses', 'approvals', 'Reminder', 'no. ' || state.reminders);
  -- A timer may not end after the dialog's lifetime (S8410).
  select e.lifetime into deadline from sb.conversation_endpoints as e where e.conversation_handle = handle;
  if clock_timestamp() + interval '0.7 seconds' < deadline then
    perform sb.begin_conversation_timer(handle, interval '0.6 seconds');
  end if;
exception
  -- The decision has come at this very moment: there is nobody to remind any more.
  when sqlstate 'S8429' then
    null;
end
$$;

create function expenses.on_end(own_group uuid, handle uuid, error bytea)
  returns void
  language plpgsql
as $$
declare
  state expenses.report;
begin
  select s.* into state from expenses.report as s where s.conversation_group_id = own_group;
  perform sb.end_conversation(handle);
  if handle = state.approval_handle then
    perform expenses.trace(state.number, 'approvals', 'expenses',
      case when error is null then 'EndDialog' else 'Error ' || sb.error_code(error) end,
      coalesce(sb.error_description(error), ''));
    if state.status = 'waiting' then
      perform expenses.answer(own_group, 'rejected', 'Nobody decided in time.');
    end if;
  elsif state.status = 'waiting' then
    -- The employee has withdrawn the report, or its lifetime has passed.
    update expenses.report as s
       set status = 'abandoned'
     where s.conversation_group_id = own_group;
    perform sb.end_conversation(state.approval_handle);
  end if;
end
$$;

create procedure expenses.process()
  language plpgsql
as $$
declare
  own_group uuid;
  m record;
begin
  loop
    -- One conversation group at a time. While we hold it, nobody else works on it or on its state.
    own_group := sb.get_conversation_group('ExpenseQueue');
    exit when own_group is null;
    for m in select r.* from sb.receive('ExpenseQueue', for_group => own_group) as r loop
      case m.message_type_name
        when '//expenses/Report' then
          perform expenses.on_report(own_group, m.conversation_handle, sb.body_json(m.message_body));
        when '//approval/Decision' then
          perform expenses.on_decision(own_group, sb.body_json(m.message_body));
        when 'https://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer' then
          perform expenses.on_timer(own_group, m.conversation_handle);
        when 'https://schemas.microsoft.com/SQL/ServiceBroker/EndDialog' then
          perform expenses.on_end(own_group, m.conversation_handle, null);
        when 'https://schemas.microsoft.com/SQL/ServiceBroker/Error' then
          perform expenses.on_end(own_group, m.conversation_handle, m.message_body);
      end case;
    end loop;
    -- Receive, state and answers happen together; the group is free again.
    commit;
  end loop;
end
$$;
comment on procedure expenses.process() is
  'Activation procedure of ExpenseQueue: the application outline of Service Broker. Returns when the queue is empty.';

-- ---------------------------------------------------------------------------------------------
-- The approvers' side; its handler is written in Go.
-- ---------------------------------------------------------------------------------------------

create schema approver;
create table approver.person (
  name text primary key,
  approves_up_to numeric not null,
  answers_after integer
);
comment on column approver.person.answers_after is 'How many reminders it takes; null is for somebody who never answers.';

-- ---------------------------------------------------------------------------------------------
-- Who may do what, and what runs by itself.
-- ---------------------------------------------------------------------------------------------

grant usage on schema employee, expenses to :"employee";
grant insert on employee.submission to :"employee";
select sb.grant_receive('EmployeeQueue', :'employee');
select sb.grant_references('//expenses/Processing', :'employee');

grant usage on schema expenses to :"service";
grant select on all tables in schema expenses to :"service";
grant insert on expenses.accepted to :"service";
grant insert, update on expenses.report to :"service";
select sb.grant_receive('ExpenseQueue', :'service');
select sb.grant_references('//approval/Approval', :'service');

-- An admin of sb is what an activator has to be; it is not a superuser.
select sb.grant_admin(:'activator');
grant usage on schema employee, expenses, approver to :"activator";
grant select, update on employee.submission to :"activator";
grant select on approver.person to :"activator";

select sb.alter_queue('ExpenseQueue', activation_procedure => 'expenses.process', max_queue_readers => 3,
  execute_as => :'service');
