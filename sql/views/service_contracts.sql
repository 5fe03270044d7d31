create or replace view sb.service_contracts
  with (security_barrier = true)
as
select case b.system_names when 'sqlserver' then coalesce(c.sqlserver_name, c.name) else c.name end as name,
       c.service_contract_id,
       pg_catalog.to_regrole(pg_catalog.quote_ident(c.owner))::oid::integer as principal_id,
       c.owner
  from sb_internal.contract as c
 cross join sb_internal.broker as b
 where c.service_contract_id = any ((select sb_internal._visible(current_user, 'contract'))::integer[]);
comment on view sb.service_contracts is
  'Contracts that the reader owns or may reference; the system''s are for everybody.';
