-- Whoever waits for a table lock makes all who come after wait too: so for a fifth of a second at a time
-- (less than deadlock_timeout, so never as the victim of a deadlock), and not for ever.
create or replace function sb_internal._lock_table(
  target text,
  mode text,
  patience interval
)
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
  loop
    begin
      execute format('lock table sb_internal.%I in %s mode', _lock_table.target, _lock_table.mode);
      return true;
    exception
      when lock_not_available then
        null;
    end;
    if clock_timestamp() >= give_up_at then
      return false;
    end if;
    perform pg_sleep(random() * 0.1);
  end loop;
end
$$;
comment on function sb_internal._lock_table(text, text, interval) is
  'Locks a table of sb_internal to the end of the transaction; false when it could not be had within patience.';
revoke all on function sb_internal._lock_table(text, text, interval) from public;
