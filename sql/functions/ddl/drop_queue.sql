create or replace function sb.drop_queue(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_queue(current_user, drop_queue.name, drop_queue.if_exists);
end;
comment on function sb.drop_queue(text, boolean) is
  'DROP QUEUE, with its event notifications, whose subscribers get EndDialog (R-060, R-110). For the owner and admins. Errors: 42501, S0208, S3716 used by a service, S9663. Locks: the catalog, the queue row. Waits for nobody who receives.';
revoke all on function sb.drop_queue(text, boolean) from public;
