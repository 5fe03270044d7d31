create or replace function sb.excuse_reader(queue_id integer, pid integer)
  returns boolean
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._excuse_reader(current_user, excuse_reader.queue_id, excuse_reader.pid);
end;
comment on function sb.excuse_reader(integer, integer) is
  'For activators that end, or whose handler cannot work: the transaction that the session with this process id is in, and has received in, does not count for the poison limit of the queue when it is rolled back; true when there is one. To be called while it is still open. Takes effect at once and survives a rollback. Admins only. Locks nothing.';
revoke all on function sb.excuse_reader(integer, integer) from public;
