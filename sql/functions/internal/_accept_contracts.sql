create or replace function sb_internal._accept_contracts(caller name, service_id integer, contracts text[])
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  contract record;
begin
  for contract in
    select a.name, c.id, c.owner, c.acl, count(*) over (partition by c.id) as times
      from unnest(_accept_contracts.contracts) as a (name)
     cross join lateral sb_internal._lookup('contract', a.name) as c
  loop
    if contract.times > 1 then
      perform sb_internal._raise('S8404', array[contract.name]);
    end if;
    if not sb_internal._may(_accept_contracts.caller, contract.owner, contract.acl) then
      perform sb_internal._raise('42501', array[_accept_contracts.caller::text, 'use contract ' || contract.name]);
    end if;
    insert into sb_internal.service_contract (service_id, service_contract_id)
    values (_accept_contracts.service_id, contract.id)
        on conflict on constraint service_contract_pkey do nothing;
    if not found then
      perform sb_internal._raise('42710', array['contract of this service', contract.name],
        'service_id=' || _accept_contracts.service_id);
    end if;
  end loop;
end
$$;
comment on function sb_internal._accept_contracts(name, integer, text[]) is
  'Adds to the contracts that a service accepts as target. Errors: 42704, 42501 no right to reference one, S8404 listed twice, 42710 accepted already.';
revoke all on function sb_internal._accept_contracts(name, integer, text[]) from public;
