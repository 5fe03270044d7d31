create or replace view sb.services
  with (security_barrier = true)
as
select case b.system_names when 'sqlserver' then coalesce(s.sqlserver_name, s.name) else s.name end as name,
       s.service_id,
       pg_catalog.to_regrole(pg_catalog.quote_ident(s.owner))::oid::integer as principal_id,
       s.queue_id as service_queue_id,
       s.owner
  from sb_internal.service as s
 cross join sb_internal.broker as b
 where s.service_id = any ((select sb_internal._visible(current_user, 'service'))::integer[]);
comment on view sb.services is
  'Services that the reader owns, may send to, or whose queue he may receive from.';
