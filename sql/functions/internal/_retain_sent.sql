create or replace function sb_internal._retain_sent(
  e sb_internal.endpoint,
  message_type_id integer,
  first_sequence bigint,
  bodies bytea[]
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  insert into sb_internal.retained_message (queuing_order, message_sequence_number, message_enqueue_time,
    queue_id, message_type_id, conversation_handle, conversation_group_id, priority, message_body, status)
  select nextval('sb_internal.queuing_order'), _retain_sent.first_sequence + b.ordinality - 1,
         sb_internal._now(), s.queue_id, _retain_sent.message_type_id, e.conversation_handle,
         e.conversation_group_id, e.priority, nullif(b.body, ''), 3
    from unnest(_retain_sent.bodies) with ordinality as b (body, ordinality)
   cross join sb_internal.service as s
   where s.service_id = e.service_id;
end
$$;
comment on function sb_internal._retain_sent(sb_internal.endpoint, integer, bigint, bytea[]) is
  'Keeps copies (status 3) of sent messages in the sender''s own queue (R-053).';
revoke all on function sb_internal._retain_sent(sb_internal.endpoint, integer, bigint, bytea[]) from public;
