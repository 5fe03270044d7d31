create or replace function sb_internal._stamp()
  returns bigint
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select (hashtextextended(c.system_identifier || '/' || d.oid || '/' || 'sb_internal.message'::regclass::oid, 0)
            & 9223372036854775807)
      from pg_control_system() as c
      join pg_database as d on d.datname = current_database());
end
$$;
comment on function sb_internal._stamp() is
  'Identity of this copy of the broker: cluster, database, message table. Reads the control file (some 20 µs): for rare paths only.';
revoke all on function sb_internal._stamp() from public;
