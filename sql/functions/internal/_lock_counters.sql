-- A reader answers the conversations of its group in the order of their messages, not of their handles. So
-- who wants several for one SEND does as _lock_conversations: waits only far shorter than deadlock_timeout,
-- and else gives all back and begins anew. That is no help against one who waits for a lock that the
-- transaction had before: so after a while it stands firm, and one of the two is the victim.
create or replace function sb_internal._lock_counters(conversation_handles uuid[])
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  own_timeout text := current_setting('lock_timeout');
  give_up_at timestamptz := clock_timestamp() + nullif(own_timeout, '0')::interval;  -- null: never
  insist_at timestamptz := clock_timestamp() + interval '3 seconds';
  is_polite boolean;
begin
  loop
    is_polite := clock_timestamp() < insist_at;
    perform set_config('lock_timeout', case when is_polite then '50ms' else own_timeout end, true);
    begin
      -- A side that has sent nothing yet has no counter: _first_send locks its endpoint.
      perform 1
         from sb_internal.endpoint as e
        where e.conversation_handle = any (_lock_counters.conversation_handles)
          and not exists (
            select 1
              from sb_internal.send_counter as c
             where c.conversation_handle = e.conversation_handle)
        order by e.conversation_handle
          for no key update;
      perform 1
         from sb_internal.send_counter as c
        where c.conversation_handle = any (_lock_counters.conversation_handles)
        order by c.conversation_handle
          for no key update;
      perform set_config('lock_timeout', own_timeout, true);
      return;
    exception
      when lock_not_available then
        if not is_polite or clock_timestamp() >= give_up_at then
          raise;
        end if;
    end;
    perform pg_sleep(random() * 0.05);
  end loop;
end
$$;
comment on function sb_internal._lock_counters(uuid[]) is
  'Takes the locks of SEND on several conversations. Part of a deadlock only after 3 s without success. Gives up after lock_timeout.';
revoke all on function sb_internal._lock_counters(uuid[]) from public;
