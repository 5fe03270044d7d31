create or replace function sb_internal._deliver(queue_id integer, service_name text)
  returns bigint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  to_service text;
  deliverable text[] := '{}'::text[];
  conversation uuid;
  e sb_internal.endpoint;
  moved bigint := 0::bigint;
begin
  if not (select b.is_broker_enabled from sb_internal.broker as b where b.singleton) then
    return moved;
  end if;
  -- From service to service, so that a backlog for one that takes nothing costs one step.
  loop
    select t.to_service_name
      into to_service
      from sb_internal.transmission as t
     where (to_service is null or t.to_service_name > to_service)
       and (_deliver.service_name is null or t.to_service_name = _deliver.service_name)
     order by t.to_service_name
     limit 1;
    exit when not found;
    if sb_internal._undeliverable(to_service) is null
      and (_deliver.queue_id is null or exists (
        select 1
          from sb_internal.service as s
         where s.name = to_service
           and s.queue_id = _deliver.queue_id))
    then
      deliverable := deliverable || to_service;
    end if;
  end loop;

  for conversation in
    select w.conversation_handle
      from (
        select distinct t.conversation_handle
          from sb_internal.transmission as t
         where t.to_service_name = any (deliverable)) as w
      join sb_internal.endpoint as o on o.conversation_handle = w.conversation_handle
     cross join sb_internal.broker as b
     where b.singleton
     order by case when b.is_honor_broker_priority_on then o.priority end desc, w.conversation_handle
  loop
    -- A conversation somebody sends on or ends is moved on by him, or next time.
    select o.*
      into e
      from sb_internal.endpoint as o
     where o.conversation_handle = conversation
       for no key update skip locked;
    continue when not found;
    perform 1
       from sb_internal.send_counter as c
      where c.conversation_handle = conversation
      order by c.conversation_handle desc, c.message_sequence_number desc
      limit 1
        for no key update skip locked;
    if found or e.state = 'DO' then
      moved := moved + sb_internal._deliver_conversation(e);
    end if;
  end loop;
  return moved;
end
$$;
comment on function sb_internal._deliver(integer, text) is
  'Moves on what waits in the transmission queue for a queue and service (null: any) and can be delivered; returns how many messages. Under the option honor_broker_priority conversations of higher priority go first (R-102). Takes endpoint and counter locks with skip locked only.';
revoke all on function sb_internal._deliver(integer, text) from public;
