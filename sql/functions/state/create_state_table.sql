create or replace function sb.create_state_table(
  table_name text,
  columns text,
  drop_on_end boolean default true,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._open_state_table(current_user, create_state_table.drop_on_end);
  select sb_internal._make_state_table(create_state_table.table_name, create_state_table.columns,
    create_state_table.drop_on_end, create_state_table.if_not_exists);
  select sb_internal._close_state_table(current_user, create_state_table.table_name, create_state_table.drop_on_end);
end;
comment on function sb.create_state_table(text, text, boolean, boolean) is
  'Creates table_name (an SQL name, optionally qualified and quoted) with the key conversation_group_id and the given further columns, with the caller''s rights and owned by the caller. With drop_on_end the key references the group with on delete cascade, so that a group''s row goes when its last conversation ends; for admins only, since END then waits for locks on the table and runs its triggers, whoever ends. Rights on it are ordinary table rights. Errors: SB002, 42501 and those of create table.';
revoke all on function sb.create_state_table(text, text, boolean, boolean) from public;
