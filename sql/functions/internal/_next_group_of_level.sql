-- The hint is where the last group that could be locked was found. It is never trusted: it says where
-- to begin, not what to take, so it may be wrong in any way.
create or replace function sb_internal._next_group_of_level(
  queue_id integer,
  level smallint,
  is_full boolean,
  out conversation_group_id uuid,
  out conversation_handle uuid
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  hint bigint := coalesce(sb_internal._cell(_next_group_of_level.queue_id, 'hint_' || _next_group_of_level.level), 0);
  found_at bigint;
  candidate record;
  looked integer := 0;
  tried uuid[] := '{}'::uuid[];
  oldest_due timestamptz;
  stepped uuid;
  stepped_to bigint := 9223372036854775807;
  wrapped boolean := false;
  first_step uuid;
begin
  if _next_group_of_level.is_full then
    -- One row, whatever the plan: min() may be planned to read all, and a volatile clock in the where clause
    -- would be asked for each.
    select d.due_at
      into oldest_due
      from sb_internal.due as d
     where d.queue_id = _next_group_of_level.queue_id
       and d.priority = _next_group_of_level.level
     order by d.due_at
     limit 1;
    if oldest_due > clock_timestamp() then
      oldest_due := null;
    end if;
  end if;

  for candidate in
    select m.conversation_handle, m.conversation_group_id, m.queuing_order, m.message_enqueue_time
      from sb_internal.message as m
     where m.queue_id = _next_group_of_level.queue_id
       and m.priority = _next_group_of_level.level
       and m.queuing_order >= case when _next_group_of_level.is_full then 0 else hint end
     order by m.queuing_order
     limit 300
  loop
    looked := looked + 1;
    -- A timer that fell due before the message arrived goes first, else the message.
    if oldest_due <= candidate.message_enqueue_time then
      select d.conversation_group_id, d.conversation_handle
        into _next_group_of_level.conversation_group_id, _next_group_of_level.conversation_handle
        from sb_internal._claim_due(_next_group_of_level.queue_id, _next_group_of_level.level) as d;
      if conversation_group_id is not null then
        return;
      end if;
      oldest_due := null;
    end if;
    continue when candidate.conversation_group_id = any (tried);
    -- What the conversation would give first is a timer that fell due after the message arrived: its turn is
    -- at that time. Else a timer armed again and again would let the old message behind it hold the front.
    continue when exists (
      select 1
        from sb_internal.due as d
       where d.conversation_handle = candidate.conversation_handle
         and d.due_at > candidate.message_enqueue_time
         and d.due_at <= clock_timestamp());
    conversation_group_id := sb_internal._claim(candidate.conversation_handle);
    if conversation_group_id is not null then
      conversation_handle := candidate.conversation_handle;
      found_at := candidate.queuing_order;
      exit;
    end if;
    -- An orphan, or a message with an old hint, says nothing about the group whose id it carries.
    if exists (
      select 1
        from sb_internal.endpoint as e
       where e.conversation_handle = candidate.conversation_handle
         and e.conversation_group_id is not distinct from candidate.conversation_group_id
         and e.state <> 'DO')
    then
      tried := tried || candidate.conversation_group_id;
    end if;
  end loop;

  if conversation_group_id is null and oldest_due is not null then
    select d.conversation_group_id, d.conversation_handle
      into _next_group_of_level.conversation_group_id, _next_group_of_level.conversation_handle
      from sb_internal._claim_due(_next_group_of_level.queue_id, _next_group_of_level.level) as d;
  end if;

  if conversation_group_id is null and looked = 300 then
    -- The front belongs to busy groups. Step from group to group, one probe each, from a random point
    -- on and once around; stepping by conversation would walk a busy group's thousands.
    stepped := gen_random_uuid();
    first_step := stepped;
    loop
      select m.conversation_handle, m.conversation_group_id, m.queuing_order
        into candidate
        from sb_internal.message as m
       where m.queue_id = _next_group_of_level.queue_id
         and m.priority = _next_group_of_level.level
         and (m.conversation_group_id, m.queuing_order) > (stepped, stepped_to)
       order by m.conversation_group_id, m.queuing_order
       limit 1;
      if not found or wrapped and candidate.conversation_group_id > first_step then
        exit when wrapped;
        wrapped := true;
        stepped := '00000000-0000-0000-0000-000000000000';
        continue;
      end if;
      stepped := candidate.conversation_group_id;
      stepped_to := 9223372036854775807;
      continue when stepped = any (tried);
      conversation_group_id := sb_internal._claim(candidate.conversation_handle);
      if conversation_group_id is not null then
        conversation_handle := candidate.conversation_handle;
        found_at := candidate.queuing_order;
        exit;
      end if;
      -- An orphan, or a message with an old hint: there may be more behind it in the group whose id it carries.
      if not exists (
        select 1
          from sb_internal.endpoint as e
         where e.conversation_handle = candidate.conversation_handle
           and e.conversation_group_id is not distinct from stepped
           and e.state <> 'DO')
      then
        stepped_to := candidate.queuing_order;
      end if;
    end loop;
  end if;

  if found_at is not null then
    perform sb_internal._advance_hint(_next_group_of_level.queue_id, _next_group_of_level.level, found_at);
  end if;
end
$$;
comment on function sb_internal._next_group_of_level(integer, smallint, boolean) is
  'One priority level of _next_group: a window from the start hint (a full search: from the front), then due timers and lifetimes, then from group to group.';
revoke all on function sb_internal._next_group_of_level(integer, smallint, boolean) from public;
