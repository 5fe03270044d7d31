create or replace function sb_internal._take_group(
  queue_id integer,
  group_id uuid,
  priority_levels smallint[],
  max_messages bigint,
  is_retained boolean
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
  total bigint := 0;
  is_found_taken boolean := false;
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

    -- then conversation after conversation, by the oldest message. Rows already taken lie behind last_order.
    last_order := -1;
    loop
      select m.conversation_handle, m.queuing_order
        into candidate
        from sb_internal.message as m
       where m.queue_id = _take_group.queue_id
         and m.priority = level
         and m.conversation_group_id = _take_group.group_id
         and m.queuing_order > last_order
       order by m.queuing_order
       limit 1;
      exit when not found;
      last_order := candidate.queuing_order;
      -- The group in a message row is a hint; the endpoint knows.
      continue when not exists (
        select 1
          from sb_internal.endpoint as e
         where e.conversation_handle = candidate.conversation_handle
           and e.conversation_group_id = _take_group.group_id);
      return query select t.* from sb_internal._take(candidate.conversation_handle, max_messages, _take_group.is_retained) as t;
      get diagnostics taken = row_count;
      total := total + taken;
      max_messages := max_messages - taken;
      if max_messages <= 0 then
        return;
      end if;
    end loop;
  end loop;

  -- Messages that arrived during a move carry another group's hint. Rare, so looked for only when the
  -- group seems empty.
  if total = 0 then
    for candidate in
      select e.conversation_handle
        from sb_internal.endpoint as e
       where e.conversation_group_id = _take_group.group_id
         and e.state <> 'DO'
       order by e.priority desc
    loop
      continue when not exists (
        select 1
          from sb_internal.message as m
         where m.conversation_handle = candidate.conversation_handle);
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
comment on function sb_internal._take_group(integer, uuid, smallint[], bigint, boolean) is
  'Takes what a group has ready, at most max_messages: conversations by priority, whole ones one after another (R-179). The caller holds the group lock.';
revoke all on function sb_internal._take_group(integer, uuid, smallint[], bigint, boolean) from public;
