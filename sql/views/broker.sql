create or replace view sb.broker
  with (security_barrier = true)
as
select b.broker_instance,
       b.is_broker_enabled,
       b.is_honor_broker_priority_on,
       (select pg_catalog.max(m.version)
          from sb_internal.meta as m) as schema_version,
       b.admins
  from sb_internal.broker as b;
comment on view sb.broker is
  'The broker of this database, one row: its instance, by which routes and dialogs name it, and its switches, and the roles that sb.grant_admin has made admins.';
