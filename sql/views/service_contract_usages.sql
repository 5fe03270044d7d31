create or replace view sb.service_contract_usages
  with (security_barrier = true)
as
select c.service_id,
       c.service_contract_id
  from sb_internal.service_contract as c
 where c.service_id = any ((select sb_internal._visible(current_user, 'service'))::integer[]);
comment on view sb.service_contract_usages is
  'The contracts that services accept as target, of services that the reader sees in sb.services.';
