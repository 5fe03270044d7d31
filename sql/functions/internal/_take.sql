create or replace function sb_internal._take(
  conversation uuid,
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
  e record;
  m record;
  lowest bigint := (-1)::bigint;
  taken tid[] := '{}'::tid[];
  type_id integer;
  took_error boolean := false;
  took_end boolean := false;
begin
  select o.conversation_group_id as group_id, o.state, o.lifetime, o.priority, o.is_initiator,
         s.service_id, case b.system_names when 'sqlserver' then coalesce(s.sqlserver_name, s.name) else s.name end
           as service_name,
         o.service_contract_id, case b.system_names when 'sqlserver' then coalesce(k.sqlserver_name, k.name)
           else k.name end as contract_name,
         b.system_names,
         (select d.due_at
            from sb_internal.due as d
           where d.conversation_handle = _take.conversation
             and not d.is_lifetime) as timer,
         (select c.message_sequence_number
            from sb_internal.receive_cursor as c
           where c.conversation_handle = _take.conversation
           order by c.conversation_handle desc, c.message_sequence_number desc
           limit 1) as cursor,
         (select min(n.message_type_id)
            from sb_internal.message as n
           where n.conversation_handle = _take.conversation
             and n.message_type_id in (1, 2)) as control
    into e
    from sb_internal.endpoint as o
    join sb_internal.service as s on s.service_id = o.service_id
    left join sb_internal.contract as k on k.service_contract_id = o.service_contract_id
   cross join sb_internal.broker as b
   where o.conversation_handle = _take.conversation
     and b.singleton;
  if not found or e.state = 'DO' then
    return;
  end if;
  status := 0;
  priority := e.priority;
  conversation_group_id := e.group_id;
  conversation_handle := _take.conversation;
  service_name := e.service_name;
  service_id := e.service_id;
  service_contract_name := e.contract_name;
  service_contract_id := e.service_contract_id;

  -- Time first: a timer whose time has passed is a DialogTimer, before everything else of its dialog.
  if e.timer <= clock_timestamp() then
    delete from sb_internal.due as d
     where d.conversation_handle = _take.conversation
       and not d.is_lifetime;
    queuing_order := 0;
    message_sequence_number := -1;
    message_type_id := 5;
    select t.name, t.validation into message_type_name, validation
      from sb_internal._type_for_row(5, e.system_names) as t;
    message_body := null;
    message_enqueue_time := e.timer;
    max_messages := max_messages - 1;
    return next;
  end if;
  -- The same with the lifetime. A conversation that has ended or failed stays as it is.
  if e.lifetime <= clock_timestamp() and max_messages > 0 then
    delete from sb_internal.due as d
     where d.conversation_handle = _take.conversation
       and d.is_lifetime;
    if found and e.state = 'CO'
      and not exists (
        select 1
          from sb_internal.message as n
         where n.conversation_handle = _take.conversation
           and n.message_type_id in (1, 2)
           and (n.message_type_id = 1 or n.message_enqueue_time < e.lifetime))
    then
      update sb_internal.endpoint as o
         set state = 'ER'
       where o.conversation_handle = _take.conversation;
      queuing_order := 0;
      message_sequence_number := -1;
      message_type_id := 1;
      select t.name, t.validation into message_type_name, validation
        from sb_internal._type_for_row(1, e.system_names) as t;
      message_body := sb_internal._error_body(sb_internal._system_namespace(), -8489,
        'The dialog has exceeded its lifetime.');
      message_enqueue_time := e.lifetime;
      max_messages := max_messages - 1;
      return next;
    end if;
  end if;
  if max_messages <= 0 then
    return;
  end if;

  -- The cursor keeps the probe off the rows received before; an Error (-1) sits before all of them.
  if e.cursor is not null and e.control is distinct from 1 then
    lowest := e.cursor;
  end if;
  for m in
    select n.ctid, n.queuing_order, n.message_sequence_number, n.message_type_id, n.message_body,
           n.message_enqueue_time
      from sb_internal.message as n
     where n.conversation_handle = _take.conversation
       and n.message_sequence_number >= lowest
     order by n.message_sequence_number
     limit max_messages
  loop
    if type_id is distinct from m.message_type_id then
      type_id := m.message_type_id;
      select t.name, t.validation into message_type_name, validation
        from sb_internal._type_for_row(type_id, e.system_names) as t;
      message_type_id := type_id;
      took_error := took_error or type_id = 1;
      took_end := took_end or type_id = 2;
    end if;
    queuing_order := m.queuing_order;
    message_sequence_number := m.message_sequence_number;
    message_body := m.message_body;
    message_enqueue_time := m.message_enqueue_time;
    taken := taken || m.ctid;
    return next;
  end loop;
  if taken = '{}' then
    return;
  end if;

  if _take.is_retained then
    insert into sb_internal.retained_message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body, status)
    select n.queuing_order, n.message_sequence_number, n.message_enqueue_time, n.queue_id, n.message_type_id,
           n.conversation_handle, e.group_id, n.priority, n.message_body, 0
      from sb_internal.message as n
     where n.ctid = any (taken);
  end if;
  delete from sb_internal.message as n
   where n.ctid = any (taken);

  -- What the peer did to this conversation becomes this side's own state when it is handed out. By what was
  -- handed out: it may have arrived after the look at the top.
  if took_error or took_end then
    update sb_internal.endpoint as o
       set state = case when took_error then 'ER' when o.state = 'CO' then 'DI' else o.state end
     where o.conversation_handle = _take.conversation;
    if e.lifetime is not null then
      delete from sb_internal.due as d
       where d.conversation_handle = _take.conversation
         and d.is_lifetime;
    end if;
  end if;
  if message_sequence_number - coalesce(e.cursor, 0) >= 64 then
    perform sb_internal._advance_cursor(_take.conversation, e.cursor, _take.message_sequence_number + 1);
  end if;
end
$$;
comment on function sb_internal._take(uuid, bigint, boolean) is
  'Takes what a conversation has ready, at most max_messages, in the order of processing: DialogTimer, Error, then by sequence number. The caller holds the group lock.';
revoke all on function sb_internal._take(uuid, bigint, boolean) from public;
