create or replace function sb_internal._alter_queue(
  caller name,
  name text,
  enabled boolean,
  retention boolean,
  activation_procedure text,
  max_queue_readers integer,
  activation_enabled boolean,
  execute_as name,
  poison_message_handling boolean,
  drop_activation boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  changes_activation boolean := num_nonnulls(_alter_queue.activation_procedure, _alter_queue.max_queue_readers,
    _alter_queue.activation_enabled, _alter_queue.execute_as) > 0;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('queue', _alter_queue.name);
  perform sb_internal._require_owner(_alter_queue.caller, object.owner, 'alter queue ' || _alter_queue.name);
  perform sb_internal._require_user_object(object.id, 'queue ' || _alter_queue.name);
  if _alter_queue.drop_activation and changes_activation then
    perform sb_internal._raise('22023', array['drop_activation excludes all other activation settings']);
  elsif _alter_queue.drop_activation is not true and not changes_activation
    and num_nonnulls(_alter_queue.enabled, _alter_queue.retention, _alter_queue.poison_message_handling) = 0
  then
    perform sb_internal._raise('22023', array['nothing to change for queue ' || _alter_queue.name]);
  end if;

  -- Switching on again frees a queue whose reader was started but never received (R-317). Before the
  -- queue row, as in a send whose event finds its subscriber gone.
  if _alter_queue.enabled or _alter_queue.activation_enabled then
    update sb_internal.queue_monitor as m
       set state = 'INACTIVE'
     where m.queue_id = object.id
       and m.state <> 'INACTIVE';
  end if;
  if _alter_queue.drop_activation then
    update sb_internal.queue as q
       set activation_procedure = null,
           max_readers = null,
           is_activation_enabled = false,
           execute_as = null
     where q.queue_id = object.id;
  elsif changes_activation then
    if _alter_queue.activation_enabled and _alter_queue.activation_procedure is null
      and (select q.activation_procedure is null from sb_internal.queue as q where q.queue_id = object.id)
    then
      perform sb_internal._raise('S9614', array['(none)'], 'queue=' || _alter_queue.name);
    end if;
    perform sb_internal._set_activation(_alter_queue.caller, object.id, _alter_queue.activation_procedure,
      _alter_queue.max_queue_readers, _alter_queue.activation_enabled, _alter_queue.execute_as);
  end if;
  update sb_internal.queue as q
     set is_enabled = coalesce(_alter_queue.enabled, q.is_enabled),
         -- One that poison handling has stopped and somebody stops once more stays what it is.
         is_poison_disabled = q.is_poison_disabled and _alter_queue.enabled is not true,
         is_retention_enabled = coalesce(_alter_queue.retention, q.is_retention_enabled),
         is_poison_message_handling_enabled =
           coalesce(_alter_queue.poison_message_handling, q.is_poison_message_handling_enabled)
   where q.queue_id = object.id;
  if _alter_queue.enabled then
    perform sb_internal._poison_reset(object.id);
    perform sb_internal._deliver_now(object.id, null);
    perform sb_internal._look_again(object.id);
  end if;
  -- Not only for those who announced that they wait: whoever listens has to look again.
  perform pg_notify('sb_queue_' || object.id, '');
  perform sb_internal._announce(
    case _alter_queue.enabled when true then 'queue_enabled' when false then 'queue_disabled' else 'queue_altered' end,
    'queue', _alter_queue.name);
end
$$;
comment on function sb_internal._alter_queue(name, text, boolean, boolean, text, integer, boolean, name, boolean, boolean) is
  'ALTER QUEUE behind sb.alter_queue.';
revoke all on function sb_internal._alter_queue(name, text, boolean, boolean, text, integer, boolean, name, boolean, boolean) from public;
