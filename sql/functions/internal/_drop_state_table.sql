-- Runs as the caller, hence no set clause and everything qualified.
create or replace function sb_internal._drop_state_table(table_name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
as $$
declare
  target pg_catalog.regclass := pg_catalog.to_regclass(_drop_state_table.table_name);
begin
  if target is null then
    if _drop_state_table.if_exists then
      return;
    end if;
    raise exception using errcode = '42P01',
      message = pg_catalog.format('state table %s does not exist',
        pg_catalog.left(_drop_state_table.table_name, 256));
  end if;
  if not exists (
    select 1
      from pg_catalog.pg_index as i
      join pg_catalog.pg_attribute as a
        on a.attrelid operator(pg_catalog.=) i.indrelid
       and a.attnum operator(pg_catalog.=) i.indkey[0]
     where i.indrelid operator(pg_catalog.=) target
       and i.indisprimary
       and i.indnkeyatts operator(pg_catalog.=) 1
       and a.attname operator(pg_catalog.=) 'conversation_group_id')
  then
    raise exception using errcode = 'SB002',
      message = pg_catalog.format('table %s is not a state table', target);
  end if;
  execute 'drop table ' operator(pg_catalog.||) target::pg_catalog.text;
end
$$;
comment on function sb_internal._drop_state_table(text, boolean) is
  'sb.drop_state_table, with the rights and the search path of the caller.';
revoke all on function sb_internal._drop_state_table(text, boolean) from public;
