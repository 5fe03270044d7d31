create or replace function sb.drop_state_table(table_name text, if_exists boolean default false)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_state_table(drop_state_table.table_name, drop_state_table.if_exists);
end;
comment on function sb.drop_state_table(text, boolean) is
  'Drops a table made by create_state_table, with the caller''s rights. Error SB002 when it is not a state table.';
revoke all on function sb.drop_state_table(text, boolean) from public;
