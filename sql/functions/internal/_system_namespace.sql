create or replace function sb_internal._system_namespace()
  returns text
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select case b.system_names
             when 'sqlserver' then 'http://schemas.microsoft.com/SQL/ServiceBroker/Error'
             else 'https://schemas.microsoft.com/SQL/ServiceBroker'
           end
      from sb_internal.broker as b
     where b.singleton);
end
$$;
comment on function sb_internal._system_namespace() is
  'Namespace of Error bodies under the option system_names.';
revoke all on function sb_internal._system_namespace() from public;
