create or replace function sb_internal._take_group(
  queue_id integer,
  group_id uuid,
  priority_levels smallint[],
  max_messages bigint,
  is_retained boolean,
  taken_before bigint
)
  returns table (status smallint, priority smallint, queuing_order bigint, conversation_group_id uuid,
    conversation_handle uuid, message_sequence_number bigint, service_name text, service_id integer,
    service_contract_name text, service_contract_id integer, message_type_name text, message_type_id integer,
    validation text, message_body bytea, message_enqueue_time timestamptz)
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  level smallint;
  candidate record;
  last_order bigint;
  taken bigint;
  total bigint := _take_group.taken_before;
  is_small constant boolean := (
    select count(*) <= 16
      from (
        select 1
          from sb_internal.endpoint as e
         where e.conversation_group_id = _take_group.group_id
         limit 17
      ) as c);
begin
  foreach level in array _take_group.priority_levels loop
    -- What time has made due in the group,
    for candidate in
      select distinct d.conversation_handle
        from sb_internal.due as d
       where d.conversation_group_id = _take_group.group_id
         and d.priority = level
         and d.due_at <= clock_timestamp()
    loop
      return query select t.* from sb_internal._take(candidate.conversation_handle, max_messages, _take_group.is_retained) as t;
      get diagnostics taken = row_count;
      total := total + taken;
      max_messages := max_messages - taken;
      if max_messages <= 0 then
        return;
      end if;
    end loop;

    -- then conversation after conversation, by the oldest message. Mostly there are few: each is asked,
    -- from its cursor on. Of many, the messages are walked, rows already taken lie behind last_order; that
    -- walk meets every dead row of the group while an old snapshot is held.
    last_order := -1;
    loop
      if is_small then
        select e.conversation_handle, f.queuing_order
          into candidate
          from sb_internal.endpoint as e
         cross join lateral (
           (select m.queuing_order
              from sb_internal.message as m
             where m.conversation_handle = e.conversation_handle
               and m.message_type_id in (1, 2)
             limit 1)
            union all
           (select m.queuing_order
              from sb_internal.message as m
             where m.conversation_handle = e.conversation_handle
               and m.message_sequence_number >= coalesce((
                 select c.message_sequence_number
                   from sb_internal.receive_cursor as c
                  where c.conversation_handle = e.conversation_handle
                  order by c.conversation_handle desc, c.message_sequence_number desc
                  limit 1), -1)
             order by m.message_sequence_number
             limit 1)
         ) as f
         where e.conversation_group_id = _take_group.group_id
           and e.priority = level
           and e.state <> 'DO'
           and f.queuing_order > last_order
         order by f.queuing_order
         limit 1;
      else
        select m.conversation_handle, m.queuing_order
          into candidate
          from sb_internal.message as m
         where m.queue_id = _take_group.queue_id
           and m.priority = level
           and m.conversation_group_id = _take_group.group_id
           and m.queuing_order > last_order
         order by m.queuing_order
         limit 1;
      end if;
      exit when not found;
      last_order := candidate.queuing_order;
      -- The group in a message row is a hint; the endpoint knows.
      continue when not is_small and not exists (
        select 1
          from sb_internal.endpoint as e
         where e.conversation_handle = candidate.conversation_handle
           and e.conversation_group_id is not distinct from _take_group.group_id);
      return query select t.* from sb_internal._take(candidate.conversation_handle, max_messages, _take_group.is_retained) as t;
      get diagnostics taken = row_count;
      total := total + taken;
      max_messages := max_messages - taken;
      if max_messages <= 0 then
        return;
      end if;
    end loop;
  end loop;

  -- Messages that arrived during a move carry another group's hint, which the walk does not see. Rare, so
  -- looked for only when the group seems empty.
  if total = 0 and not is_small then
    for candidate in
      select e.conversation_handle
        from sb_internal.endpoint as e
       cross join lateral (
         select 1
           from sb_internal.message as m
          where m.conversation_handle = e.conversation_handle
          limit 1) as m
       where e.conversation_group_id = _take_group.group_id
         and e.state <> 'DO'
       order by e.priority desc
    loop
      return query select t.* from sb_internal._take(candidate.conversation_handle, max_messages, _take_group.is_retained) as t;
      get diagnostics taken = row_count;
      max_messages := max_messages - taken;
      if max_messages <= 0 then
        return;
      end if;
    end loop;
  end if;
end
$$;
comment on function sb_internal._take_group(integer, uuid, smallint[], bigint, boolean, bigint) is
  'Takes what a group has ready, at most max_messages: conversations by priority, whole ones one after another (R-179). taken_before: how many the caller has taken from it already. The caller holds the group lock.';
revoke all on function sb_internal._take_group(integer, uuid, smallint[], bigint, boolean, bigint) from public;
