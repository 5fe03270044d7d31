-- Runs what the caller wrote (the columns) as the caller: no set clause, operators qualified.
create or replace function sb_internal._make_state_table(
  table_name text,
  columns text,
  drop_on_end boolean,
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
as $$
declare
  target pg_catalog.text;
begin
  if _make_state_table.table_name is null or _make_state_table.table_name operator(pg_catalog.=) '' then
    raise exception using errcode = '42602', message = 'state table name may not be null or empty';
  end if;
  -- Quoted again part by part, so that the name is a name and nothing else.
  select pg_catalog.string_agg(pg_catalog.quote_ident(p.part), '.' order by p.ordinality)
    into target
    from pg_catalog.unnest(pg_catalog.parse_ident(_make_state_table.table_name)) with ordinality as p (part, ordinality);
  execute 'create table ' operator(pg_catalog.||) case when _make_state_table.if_not_exists
      then 'if not exists ' else '' end operator(pg_catalog.||) target
    operator(pg_catalog.||) ' (conversation_group_id pg_catalog.uuid primary key'
    operator(pg_catalog.||) case when _make_state_table.drop_on_end
      then ' references sb.conversation_group (conversation_group_id) on delete cascade' else '' end
    operator(pg_catalog.||) case when pg_catalog.btrim(_make_state_table.columns) operator(pg_catalog.<>) ''
      then ', ' operator(pg_catalog.||) _make_state_table.columns else '' end
    operator(pg_catalog.||) ')';
end
$$;
comment on function sb_internal._make_state_table(text, text, boolean, boolean) is
  'Second step of create_state_table: creates the table with the rights and the search path of the caller.';
revoke all on function sb_internal._make_state_table(text, text, boolean, boolean) from public;
