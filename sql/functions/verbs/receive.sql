-- Stable is not what this function is, but what lets the planner put its body in place of the call: a
-- volatile set-returning SQL function is parsed, planned and started again at every call, at several
-- times the cost of the receive itself. It is safe here: a function that returns a set is never
-- evaluated by the planner, and what runs is _receive, which is volatile.
create or replace function sb.receive(
  queue_name text,
  max_messages integer default null,
  for_conversation uuid default null,
  for_group uuid default null,
  timeout interval default null
)
  returns table (status smallint, priority smallint, queuing_order bigint, conversation_group_id uuid,
    conversation_handle uuid, message_sequence_number bigint, service_name text, service_id integer,
    service_contract_name text, service_contract_id integer, message_type_name text, message_type_id integer,
    validation text, message_body bytea, message_enqueue_time timestamptz)
  language sql
  stable
  parallel unsafe
  security invoker
begin atomic
  select r.status, r.priority, r.queuing_order, r.conversation_group_id, r.conversation_handle,
         r.message_sequence_number, r.service_name, r.service_id, r.service_contract_name, r.service_contract_id,
         r.message_type_name, r.message_type_id, r.validation, r.message_body, r.message_enqueue_time
    from sb_internal._receive(current_user, receive.queue_name, receive.max_messages, receive.for_conversation,
      receive.for_group, receive.timeout) as r;
end;
comment on function sb.receive(text, integer, uuid, uuid, interval) is
  'RECEIVE: removes and returns ready messages of one conversation group, in the order in which they must be processed: conversations by priority, within one DialogTimer, Error, then by sequence number (R-175, R-179, R-180). max_messages null: all of the group. The group stays locked to the end of the transaction; groups held by others are skipped. for_conversation or for_group names what to receive from and waits for its lock. timeout: null or zero does not wait for messages, negative waits without limit; a waiting call polls inside the server and holds back vacuum: clients had better LISTEN. Needs receive on the queue. Errors: S0208 queue, S9617 queue disabled, S8426 conversation, S8436 group, 22023 arguments, 42501.';
revoke all on function sb.receive(text, integer, uuid, uuid, interval) from public;
