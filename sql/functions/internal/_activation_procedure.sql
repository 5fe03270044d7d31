create or replace function sb_internal._activation_procedure(name text)
  returns text
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  parts text[];
  found_procedure record;
begin
  begin
    parts := parse_ident(_activation_procedure.name);
  exception
    when invalid_parameter_value then
      parts := '{}';
  end;
  if cardinality(parts) <> 2 then
    perform sb_internal._raise('S9614', array[_activation_procedure.name],
      case when _activation_procedure.name like '%(%)%' then 'reason=to be written without the parentheses'
      else 'reason=not a schema.name' end);
  end if;
  -- Of several overloads the one without arguments is meant.
  select n.oid as schema_oid, n.nspname, p.proname, p.pronargs
    into found_procedure
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
   where (n.nspname = parts[1] or (parts[1] = 'pg_temp' and n.oid = pg_my_temp_schema()))
     and p.proname = parts[2]
     and p.prokind in ('f', 'p')
   order by p.pronargs
   limit 1;
  if not found then
    perform sb_internal._raise('S9614', array[_activation_procedure.name]);
  elsif starts_with(found_procedure.nspname, 'pg_temp_') then
    perform sb_internal._raise('S9742', array[_activation_procedure.name]);
  elsif found_procedure.pronargs > 0 then
    perform sb_internal._raise('S9653', array[_activation_procedure.name]);
  end if;
  return format('%I.%I', found_procedure.nspname, found_procedure.proname);
end
$$;
comment on function sb_internal._activation_procedure(text) is
  'The activation procedure as it is stored, quoted schema.name. Errors: S9614 no such function or procedure, S9653 takes arguments, S9742 temporary (R-042).';
revoke all on function sb_internal._activation_procedure(text) from public;
