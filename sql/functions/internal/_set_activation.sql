create or replace function sb_internal._set_activation(
  caller name,
  queue_id integer,
  activation_procedure text,
  max_queue_readers integer,
  activation_enabled boolean,
  execute_as name
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  q sb_internal.queue;
  is_first boolean;
begin
  select o.*
    into q
    from sb_internal.queue as o
   where o.queue_id = _set_activation.queue_id;
  if _set_activation.max_queue_readers not between 0 and 32767 then
    perform sb_internal._raise('22023', array['max_queue_readers must be between 0 and 32767']);
  end if;
  -- The first procedure makes activation, which is born switched on; a later one leaves the switch (R-046).
  is_first := q.activation_procedure is null;
  if _set_activation.activation_procedure is not null then
    q.activation_procedure := sb_internal._activation_procedure(_set_activation.activation_procedure);
  end if;
  q.execute_as := coalesce(_set_activation.execute_as, q.execute_as,
    case when q.activation_procedure is not null then q.owner end);
  q.max_readers := coalesce(_set_activation.max_queue_readers, q.max_readers,
    case when q.activation_procedure is not null then 1 end);
  q.is_activation_enabled := q.activation_procedure is not null
    and coalesce(_set_activation.activation_enabled, is_first or q.is_activation_enabled);

  if _set_activation.activation_procedure is not null or _set_activation.execute_as is not null then
    perform sb_internal._require_run_as(_set_activation.caller, q.execute_as);
  end if;
  if q.is_activation_enabled and q.has_activation_event then
    perform sb_internal._raise('S9717', array[q.name]);
  end if;
  update sb_internal.queue as o
     set activation_procedure = q.activation_procedure,
         max_readers = q.max_readers,
         is_activation_enabled = q.is_activation_enabled,
         execute_as = q.execute_as
   where o.queue_id = _set_activation.queue_id;
end
$$;
comment on function sb_internal._set_activation(name, integer, text, integer, boolean, name) is
  'Activation settings of a queue; null leaves one as it is.';
revoke all on function sb_internal._set_activation(name, integer, text, integer, boolean, name) from public;
