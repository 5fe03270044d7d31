create or replace function sb.alter_queue(
  name text,
  enabled boolean default null,
  retention boolean default null,
  activation_procedure text default null,
  max_queue_readers integer default null,
  activation_enabled boolean default null,
  execute_as name default null,
  poison_message_handling boolean default null,
  drop_activation boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_queue(
    current_user, alter_queue.name, alter_queue.enabled, alter_queue.retention,
    alter_queue.activation_procedure, alter_queue.max_queue_readers, alter_queue.activation_enabled,
    alter_queue.execute_as, alter_queue.poison_message_handling, alter_queue.drop_activation
  );
end;
comment on function sb.alter_queue(text, boolean, boolean, text, integer, boolean, name, boolean, boolean) is
  'ALTER QUEUE: null leaves a setting as it is. enabled true forgets counted rollbacks and delivers what waits; false stops enqueue and receive (R-049 to R-052). The first activation_procedure switches activation on unless told otherwise, a later one leaves that switch alone (R-046); drop_activation erases all activation settings (R-045). retention affects later messages only. For the owner and admins; what runs as a role, by members of that role. Errors: 42501, S0208, 22023, S9613, S9614, S9653, S9742, S9717 activation beside a QUEUE_ACTIVATION notification (R-063), S9663. Locks: the catalog, the queue row; conversations with skip locked.';
revoke all on function sb.alter_queue(text, boolean, boolean, text, integer, boolean, name, boolean, boolean) from public;
