create or replace function sb_internal._create_queue(
  caller name,
  name text,
  enabled boolean,
  retention boolean,
  activation_procedure text,
  max_queue_readers integer,
  activation_enabled boolean,
  execute_as name,
  poison_message_handling boolean,
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  id integer;
begin
  perform sb_internal._require_admin(_create_queue.caller, 'create queues');
  perform sb_internal._require_name(_create_queue.name, 'queue', 128);
  if starts_with(_create_queue.name, '#') then
    perform sb_internal._raise('42602', array['queue', _create_queue.name, '128'], 'reason=no temporary queues');
  end if;
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('queue', _create_queue.name,
    exists (select 1 from sb_internal.queue as q where q.name = _create_queue.name),
    _create_queue.if_not_exists)
  then
    return;
  end if;

  insert into sb_internal.queue (queue_id, name, owner)
  values (nextval('sb_internal.queue_id'), _create_queue.name, _create_queue.caller)
      on conflict on constraint queue_name_key do nothing
  returning queue_id into id;
  perform sb_internal._set_activation(_create_queue.caller, id, _create_queue.activation_procedure,
    _create_queue.max_queue_readers, coalesce(_create_queue.activation_enabled, true), _create_queue.execute_as);
  update sb_internal.queue as q
     set is_enabled = coalesce(_create_queue.enabled, true),
         is_retention_enabled = coalesce(_create_queue.retention, false),
         is_poison_message_handling_enabled = coalesce(_create_queue.poison_message_handling, true)
   where q.queue_id = id;
  insert into sb_internal.queue_monitor (queue_id)
  values (id);
  perform sb_internal._queue_sequences(id);
  -- Nothing to deliver yet: messages wait for services, and none is on this queue.
  perform sb_internal._announce('queue_created', 'queue', _create_queue.name);
end
$$;
comment on function sb_internal._create_queue(name, text, boolean, boolean, text, integer, boolean, name, boolean, boolean) is
  'CREATE QUEUE behind sb.create_queue.';
revoke all on function sb_internal._create_queue(name, text, boolean, boolean, text, integer, boolean, name, boolean, boolean) from public;
