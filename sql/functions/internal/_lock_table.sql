-- Whoever waits for a table lock makes all who come after wait too: so for a fifth of a second at a time
-- (less than deadlock_timeout, so never as the victim of a deadlock), and not for ever.
create or replace function sb_internal._lock_table(target regclass, patience interval)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '200ms'
as $$
declare
  give_up_at timestamptz := clock_timestamp() + _lock_table.patience;
begin
  while clock_timestamp() < give_up_at loop
    begin
      if _lock_table.target = 'sb_internal.message'::regclass then
        lock table sb_internal.message in access exclusive mode;
      else
        lock table sb_internal.transmission in share row exclusive mode;
      end if;
      return true;
    exception
      when lock_not_available then
        null;
    end;
    perform pg_sleep(random() * 0.1);
  end loop;
  return false;
end
$$;
comment on function sb_internal._lock_table(regclass, interval) is
  'Locks message (access exclusive) or transmission (share row exclusive) to the end of the transaction; false when it could not be had within patience.';
revoke all on function sb_internal._lock_table(regclass, interval) from public;
