create or replace function sb_internal._wake(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- The waiting flag is a shared advisory lock of whoever sleeps. One expression: a cancel between two
  -- statements would leave the lock with this session for good.
  if not (pg_try_advisory_lock(8420, _wake.queue_id) and pg_advisory_unlock(8420, _wake.queue_id)) then
    perform pg_notify('sb_queue_' || _wake.queue_id, '');
  end if;
end
$$;
comment on function sb_internal._wake(integer) is
  'Notifies the waiters of a queue, if there are any. To be called after the insert: a waiter looks once more after raising its flag.';
revoke all on function sb_internal._wake(integer) from public;
