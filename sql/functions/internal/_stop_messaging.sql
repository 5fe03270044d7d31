-- Once nobody has locks on these tables, nobody has locks on their rows, and what follows cannot deadlock.
-- All at once or not at all: to hold one table while waiting for the next is how deadlocks are made.
create or replace function sb_internal._stop_messaging()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  give_up_at timestamptz := clock_timestamp() + nullif(current_setting('lock_timeout'), '0')::interval;  -- null: never
begin
  for attempt in 1..100 loop
    begin
      lock table sb.conversation_group, sb_internal.endpoint, sb_internal.send_counter, sb_internal.message,
        sb_internal.transmission, sb_internal.due, sb_internal.event_notification in exclusive mode nowait;
      return;
    exception
      when lock_not_available then
        exit when clock_timestamp() >= give_up_at;
        perform pg_sleep(0.05);
    end;
  end loop;
  -- Too busy to find a gap: stand in line. Whoever then waits for us while we wait for him has to retry.
  lock table sb.conversation_group, sb_internal.endpoint, sb_internal.send_counter, sb_internal.message,
    sb_internal.transmission, sb_internal.due, sb_internal.event_notification in exclusive mode;
end
$$;
comment on function sb_internal._stop_messaging() is
  'Waits until no other transaction uses a messaging verb and keeps them waiting until this one ends, as ALTER DATABASE wants the database for itself (R-123). Reading goes on. After 5 s without a gap, or lock_timeout, it waits in line, and may then be part of a deadlock.';
revoke all on function sb_internal._stop_messaging() from public;
