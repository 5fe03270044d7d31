-- Transactions lock conversations in whatever order their work wants. One that takes many of them, and
-- waits for the next while holding some, sooner or later meets a transaction that waits for it. So:
-- everything or nothing, and waiting only with nothing held.
create or replace function sb_internal._lock_conversations(service_id integer, service_contract_id integer)
  returns uuid[]
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  handles uuid[];
  locked uuid[];
  busy_group uuid;
  busy uuid;
begin
  loop
    begin
      -- No new conversation from here on: each needs a key share lock of its service (foreign key), and
      -- for a contract, which has none, an insert into the endpoint table.
      if _lock_conversations.service_id is not null then
        perform 1
           from sb_internal.service as s
          where s.service_id = _lock_conversations.service_id
            for update;
      else
        lock table sb_internal.endpoint in share row exclusive mode;
      end if;

      busy := null;
      select array_agg(l.conversation_group_id)
        into locked
        from (
          select g.conversation_group_id
            from sb.conversation_group as g
           where exists (
             select 1
               from sb_internal.endpoint as e
              where e.conversation_group_id = g.conversation_group_id
                and (e.service_id = _lock_conversations.service_id
                  or e.service_contract_id = _lock_conversations.service_contract_id))
             for update of g skip locked
        ) as l;
      select e.conversation_group_id
        into busy_group
        from sb_internal.endpoint as e
        join sb.conversation_group as g on g.conversation_group_id = e.conversation_group_id
       where (e.service_id = _lock_conversations.service_id
           or e.service_contract_id = _lock_conversations.service_contract_id)
         and not exists (
           select 1
             from unnest(locked) as l (id)
            where l.id = e.conversation_group_id)
       limit 1;
      if found then
        perform sb_internal._raise('SB003');
      end if;

      select array_agg(l.conversation_handle)
        into locked
        from (
          select e.conversation_handle
            from sb_internal.endpoint as e
           where e.service_id = _lock_conversations.service_id
              or e.service_contract_id = _lock_conversations.service_contract_id
             for update skip locked
        ) as l;
      select array_agg(e.conversation_handle order by e.conversation_handle)
        into handles
        from sb_internal.endpoint as e
       where e.service_id = _lock_conversations.service_id
          or e.service_contract_id = _lock_conversations.service_contract_id;
      select h.id
        into busy
        from unnest(handles) as h (id)
       where not exists (
         select 1
           from unnest(locked) as l (id)
          where l.id = h.id)
       limit 1;
      if found then
        perform sb_internal._raise('SB003');
      end if;
      return coalesce(handles, '{}');
    exception
      when sqlstate 'SB003' then
        null;
    end;

    -- Nothing is held now: wait for the one that was busy, and give it back too.
    begin
      if busy is null then
        perform 1
           from sb.conversation_group as g
          where g.conversation_group_id = busy_group
            for update;
      else
        perform 1
           from sb_internal.endpoint as e
          where e.conversation_handle = busy
            for update;
      end if;
      perform sb_internal._raise('SB003');
    exception
      when sqlstate 'SB003' then
        null;
    end;
  end loop;
end
$$;
comment on function sb_internal._lock_conversations(integer, integer) is
  'Locks every endpoint, with its group, of a service or of a contract (the other argument null), keeps new ones from coming, and returns the handles. Never part of a deadlock, unless the transaction held locks before.';
revoke all on function sb_internal._lock_conversations(integer, integer) from public;
