create or replace view sb.service_message_types
  with (security_barrier = true)
as
select case b.system_names when 'sqlserver' then coalesce(t.sqlserver_name, t.name) else t.name end as name,
       t.message_type_id,
       pg_catalog.to_regrole(pg_catalog.quote_ident(t.owner))::oid::integer as principal_id,
       case
         when t.validation = 'NONE' then 'N'
         when t.validation = 'EMPTY' then 'E'
         when t.validation in ('WELL_FORMED_XML', 'VALID_XML') then 'X'
         else 'J'
       end as validation,
       case
         when t.validation in ('WELL_FORMED_XML', 'VALID_XML') then 'XML'
         when t.validation in ('WELL_FORMED_JSON', 'VALID_JSON') then 'JSON'
         else t.validation
       end as validation_desc,
       t.owner,
       t.validation as validation_kind,
       t.validator,
       t.schema
  from sb_internal.message_type as t
 cross join sb_internal.broker as b
 where t.message_type_id = any ((select sb_internal._visible(current_user, 'message type'))::integer[]);
comment on view sb.service_message_types is
  'Message types: system types, those the reader owns, and those of contracts he may reference. validation is N, E, X or, beyond SQL Server, J for JSON; validation_kind is what was asked for. principal_id is the owner''s oid, null when that role is gone.';
