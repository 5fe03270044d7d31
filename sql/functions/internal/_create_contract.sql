create or replace function sb_internal._create_contract(
  caller name,
  name text,
  sent_by_initiator text[],
  sent_by_target text[],
  sent_by_any text[],
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  contract_id integer;
  entry record;
begin
  perform sb_internal._require_admin(_create_contract.caller, 'create contracts');
  perform sb_internal._require_name(_create_contract.name, 'contract', 128);
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('contract', _create_contract.name,
    (select l.id from sb_internal._lookup('contract', _create_contract.name, true) as l) is not null,
    _create_contract.if_not_exists)
  then
    return;
  end if;

  insert into sb_internal.contract (service_contract_id, name, owner)
  values (nextval('sb_internal.service_contract_id'), _create_contract.name, _create_contract.caller)
      on conflict on constraint contract_name_key do nothing
  returning service_contract_id into contract_id;
  for entry in
    select l.name, l.by_initiator, l.by_target, t.id
      from (
        select unnest(_create_contract.sent_by_initiator) as name, true as by_initiator, false as by_target
         union all
        select unnest(_create_contract.sent_by_target), false, true
         union all
        select unnest(_create_contract.sent_by_any), true, true
      ) as l
     cross join lateral sb_internal._lookup('message type', l.name) as t
  loop
    -- EndDialog and its like are sent by the broker alone: whoever could send one would forge an end.
    if entry.id in (1, 2, 5) then
      perform sb_internal._raise('S9663', array['message type ' || entry.name]);
    end if;
    insert into sb_internal.contract_message (service_contract_id, message_type_name, message_type_id,
      validation, is_sent_by_initiator, is_sent_by_target)
    select contract_id, t.name, t.message_type_id, t.validation, entry.by_initiator, entry.by_target
      from sb_internal.message_type as t
     where t.message_type_id = entry.id
        on conflict on constraint contract_message_pkey do nothing;
    if not found then
      perform sb_internal._raise('S8403', array[entry.name]);
    end if;
  end loop;
  if not exists (
    select 1
      from sb_internal.contract_message as m
     where m.service_contract_id = contract_id
       and m.is_sent_by_initiator)
  then
    perform sb_internal._raise('S8492', array[_create_contract.name]);
  end if;
end
$$;
comment on function sb_internal._create_contract(name, text, text[], text[], text[], boolean) is
  'CREATE CONTRACT behind sb.create_contract.';
revoke all on function sb_internal._create_contract(name, text, text[], text[], text[], boolean) from public;
