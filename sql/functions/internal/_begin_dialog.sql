-- Plans are made once a session, perhaps while the tables are empty, and not again at every call: see _receive.
create or replace function sb_internal._begin_dialog(
  caller name,
  from_service text,
  to_service text,
  on_contract text,
  broker_instance text,
  related_conversation uuid,
  related_conversation_group uuid,
  lifetime interval
)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  c record;
  conversation_group uuid;
  expires timestamptz;
  instance text := lower(_begin_dialog.broker_instance);
begin
  if _begin_dialog.to_service is null or _begin_dialog.to_service = ''
    or char_length(_begin_dialog.to_service) > 256
  then
    perform sb_internal._require_name(_begin_dialog.to_service, 'service', 256);
  end if;
  if char_length(instance) > 128 then
    perform sb_internal._raise('S8413');
  end if;
  if _begin_dialog.related_conversation is not null and _begin_dialog.related_conversation_group is not null then
    perform sb_internal._raise('22023',
      array['related_conversation and related_conversation_group exclude each other']);
  end if;
  if _begin_dialog.lifetime is not null then
    if _begin_dialog.lifetime <= interval '0'
      or extract(epoch from _begin_dialog.lifetime) > 2147483647
    then
      perform sb_internal._raise('S8411', array[_begin_dialog.lifetime::text]);
    end if;
    expires := sb_internal._now() + _begin_dialog.lifetime;
  end if;

  -- Against service and contract being dropped: who looks later sees what the drop has left. The other service,
  -- which need not be there, for the first SEND, mostly in this transaction.
  if sb_internal._share_names(_begin_dialog.from_service, _begin_dialog.on_contract, _begin_dialog.to_service) then
    perform 1
       from sb_internal.service as s
       join sb_internal.contract as k on k.name = _begin_dialog.on_contract
      where s.name = _begin_dialog.from_service
        for share;  -- also against alter_service: see _hold_service
  end if;
  select s.service_id, s.queue_id, s.queue_owner, s.receivers, s.broker_instance, s.has_priorities,
         k.service_contract_id, k.owner as contract_owner, k.referencers
    into c
    from sb_internal.service_status as s
    left join sb_internal.contract as k on k.name = _begin_dialog.on_contract
   where s.service_name = _begin_dialog.from_service;
  if not found then
    perform sb_internal._require_name(_begin_dialog.from_service, 'service', 128);
    perform sb_internal._raise('S8423', array[_begin_dialog.from_service]);
  end if;
  if _begin_dialog.caller <> c.queue_owner and not (_begin_dialog.caller = any (c.receivers))
    and not sb_internal._may(_begin_dialog.caller, c.queue_owner, c.receivers)
  then
    perform sb_internal._raise('42501', array[_begin_dialog.caller::text, 'receive from queue ' || q.name
      || ' and so not begin dialogs from service ' || _begin_dialog.from_service])
       from sb_internal.queue as q
      where q.queue_id = c.queue_id;
  end if;
  if c.service_contract_id is null then
    perform sb_internal._require_name(_begin_dialog.on_contract, 'contract', 128);
    perform sb_internal._raise('S8425', array[_begin_dialog.on_contract]);
  end if;
  -- The system's own contracts, DEFAULT among them, are for everybody.
  if c.service_contract_id >= 65536
    and _begin_dialog.caller <> c.contract_owner and not (_begin_dialog.caller = any (c.referencers))
    and not sb_internal._may(_begin_dialog.caller, c.contract_owner, c.referencers)
  then
    perform sb_internal._raise('42501', array[_begin_dialog.caller::text,
      'use contract ' || _begin_dialog.on_contract]);
  end if;
  if instance = 'current database' then
    instance := c.broker_instance::text;
  end if;

  if _begin_dialog.related_conversation is not null then
    conversation_group := sb_internal._lock_group_of(_begin_dialog.related_conversation);
    if conversation_group is null then
      perform sb_internal._raise('S8426', array[_begin_dialog.related_conversation::text]);
    end if;
    perform sb_internal._join_group(conversation_group, c.service_id, _begin_dialog.from_service);
  elsif _begin_dialog.related_conversation_group is not null then
    conversation_group := _begin_dialog.related_conversation_group;
    perform sb_internal._join_group(conversation_group, c.service_id, _begin_dialog.from_service);
  end if;

  return sb_internal._create_endpoint(gen_random_uuid(), gen_random_uuid(), conversation_group, c.service_id,
    c.service_contract_id, true, _begin_dialog.to_service, instance, expires,
    case
      when c.has_priorities then
        sb_internal._priority(c.service_contract_id, c.service_id, _begin_dialog.to_service)
      else 5::smallint
    end);
end
$$;
comment on function sb_internal._begin_dialog(name, text, text, text, text, uuid, uuid, interval) is
  'BEGIN DIALOG behind sb.begin_dialog.';
revoke all on function sb_internal._begin_dialog(name, text, text, text, text, uuid, uuid, interval) from public;
