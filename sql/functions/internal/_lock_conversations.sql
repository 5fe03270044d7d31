-- Transactions lock conversations in whatever order their work wants. One that takes many of them, and
-- waits for the next while holding some, sooner or later meets a transaction that waits for it: then one of
-- the two is the victim. So it waits only far shorter than deadlock_timeout, and else gives all back and
-- begins anew; who waited for it goes on meanwhile. But so many may be at work that somebody is always in
-- the way: after a while it stands firm, and who has locks in another order has to retry.
-- Row by row, not in a join: how many conversations there are is what statistics know least.
create or replace function sb_internal._lock_conversations(kind text, name text, id integer)
  returns uuid[]
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  own_timeout text := current_setting('lock_timeout');
  give_up_at timestamptz := clock_timestamp() + nullif(own_timeout, '0')::interval;  -- null: never
  insist_at timestamptz := clock_timestamp() + interval '5 seconds';
  is_polite boolean;
  has_name boolean;
  handle uuid;
  handles uuid[];
begin
  loop
    is_polite := clock_timestamp() < insist_at;
    has_name := false;
    perform set_config('lock_timeout', case when is_polite then '50ms' else own_timeout end, true);
    begin
      for pass in 1..2 loop
        for handle in
          select distinct e.conversation_group_id
            from sb_internal.endpoint as e
           where case _lock_conversations.kind when 'service' then e.service_id else e.service_contract_id end
             = _lock_conversations.id
           order by e.conversation_group_id
        loop
          perform 1
             from sb.conversation_group as g
            where g.conversation_group_id = handle
              for update;
        end loop;
        perform 1
           from sb_internal.endpoint as e
          where case _lock_conversations.kind when 'service' then e.service_id else e.service_contract_id end
            = _lock_conversations.id
          order by e.conversation_handle
            for update;
        for handle in
          select e.conversation_handle
            from sb_internal.endpoint as e
           where case _lock_conversations.kind when 'service' then e.service_id else e.service_contract_id end
             = _lock_conversations.id
           order by e.conversation_handle
        loop
          perform 1
             from sb_internal.send_counter as c
            where c.conversation_handle = handle
              for update;
        end loop;
        -- Keeps new ones from coming (_share_names; above read committed the row). Late, since it stops work
        -- that has nothing to do with the conversations locked so far; the second pass takes those that came
        -- before it. Who waits for a name, or waits for something else while he has it, holds up everybody who
        -- would share it, behind one transaction that may stay open for hours: so from here on never for long.
        has_name := true;
        perform set_config('lock_timeout', case when is_polite then '50ms' else '500ms' end, true);
        if _lock_conversations.kind = 'service' then
          perform pg_advisory_xact_lock(8423, hashtext(_lock_conversations.name));
          perform 1
             from sb_internal.service as s
            where s.service_id = _lock_conversations.id
              for update;
        else
          perform pg_advisory_xact_lock(8424, hashtext(_lock_conversations.name));
          perform 1
             from sb_internal.contract as k
            where k.service_contract_id = _lock_conversations.id
              for update;
        end if;
      end loop;
      perform set_config('lock_timeout', own_timeout, true);
      select array_agg(e.conversation_handle order by e.conversation_handle)
        into handles
        from sb_internal.endpoint as e
       where case _lock_conversations.kind when 'service' then e.service_id else e.service_contract_id end
         = _lock_conversations.id;
      return coalesce(handles, '{}');
    exception
      when lock_not_available then
        if not is_polite and not has_name or clock_timestamp() >= give_up_at then
          raise;
        end if;
      when deadlock_detected then
        -- Giving back what was taken here is no help against one who waits for a lock that the transaction
        -- had before.
        if clock_timestamp() >= insist_at + interval '5 seconds' then
          raise;
        end if;
    end;
    perform pg_sleep(case when is_polite then random() * 0.1 else 0.5 + random() end);
  end loop;
end
$$;
comment on function sb_internal._lock_conversations(text, text, integer) is
  'Locks every endpoint, with its group and counter, of a service or contract (kind, name and id), keeps new ones from coming, and returns the handles. Part of a deadlock only after 5 s without success, and the victim of one only after 10 s. Gives up after lock_timeout.';
revoke all on function sb_internal._lock_conversations(text, text, integer) from public;
