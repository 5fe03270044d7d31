create or replace view sb.queue_statistics
  with (security_barrier = true)
as
select s.queue_name,
       s.queue_id,
       s.is_on,
       s.ready_messages,
       s.is_estimate,
       s.blocked_groups,
       s.oldest_ready_age,
       s.transmission_backlog,
       s.consecutive_rollbacks,
       s.last_receive_time,
       s.last_empty_rowset_time,
       s.last_activated_time
  from sb_internal._queue_statistics(current_user) as s;
comment on view sb.queue_statistics is
  'One row for each queue that the reader may receive from, cheap enough to read every second. ready_messages is exact below 10,000 and an estimate of the planner from there on (is_estimate), locked groups included; blocked_groups are those kept back after a failure; transmission_backlog counts what waits for services of the queue, up to 10,000; consecutive_rollbacks nears poison_message_threshold; last_receive_time is when somebody last looked for messages, within a second or so.';
