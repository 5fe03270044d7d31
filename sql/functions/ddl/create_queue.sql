create or replace function sb.create_queue(
  name text,
  enabled boolean default true,
  retention boolean default false,
  activation_procedure text default null,
  max_queue_readers integer default null,
  activation_enabled boolean default true,
  execute_as name default null,
  poison_message_handling boolean default true,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_queue(
    current_user, create_queue.name, create_queue.enabled, create_queue.retention,
    create_queue.activation_procedure, create_queue.max_queue_readers,
    create_queue.activation_enabled, create_queue.execute_as, create_queue.poison_message_handling,
    create_queue.if_not_exists
  );
end;
comment on function sb.create_queue(text, boolean, boolean, text, integer, boolean, name, boolean, boolean) is
  'CREATE QUEUE. activation_procedure: schema.name of a function or procedure without arguments, run by the activator as execute_as (null: the queue''s owner) in at most max_queue_readers (null: 1) sessions (R-040 to R-044). Whoever names a role must be a member of it. Admins only. Errors: 42501, 42602 name, 42710 exists, 22023, S9613 no such role, S9614, S9653, S9742 procedure missing, with arguments, temporary. Locks: the catalog.';
revoke all on function sb.create_queue(text, boolean, boolean, text, integer, boolean, name, boolean, boolean) from public;
