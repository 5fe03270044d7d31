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
    continue when sb_internal._undeliverable(to_service) is not null;
    continue when _deliver.queue_id is not null and not exists (
      select 1
        from sb_internal.service as s
       where s.name = to_service
         and s.queue_id = _deliver.queue_id);

    conversation := null;
    loop
      select t.conversation_handle
        into conversation
        from sb_internal.transmission as t
       where t.to_service_name = to_service
         and (conversation is null or t.conversation_handle > conversation)
       order by t.conversation_handle
       limit 1;
      exit when not found;
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
      if found or not e.has_counter or e.state = 'DO' then
        moved := moved + sb_internal._deliver_conversation(e);
      end if;
    end loop;
  end loop;
  return moved;
end
$$;
comment on function sb_internal._deliver(integer, text) is
  'Moves on what waits in the transmission queue for a queue and service (null: any) and can be delivered; returns how many messages. Takes endpoint and counter locks with skip locked only.';
revoke all on function sb_internal._deliver(integer, text) from public;
