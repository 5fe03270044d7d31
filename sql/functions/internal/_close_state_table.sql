create or replace function sb_internal._close_state_table(
  caller name,
  table_name text,
  drop_on_end boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _close_state_table.drop_on_end then
    execute format('revoke references (conversation_group_id) on sb.conversation_group from %I', _close_state_table.caller);
    -- The lent right could have been used for a foreign key that blocks END: no such key may exist.
    if exists (
      select 1
        from pg_constraint as c
       where c.confrelid = 'sb.conversation_group'::regclass
         and c.contype = 'f'
         and (c.confdeltype <> 'c' or cardinality(c.conkey) <> 1 or not exists (
           select 1
             from pg_attribute as a
            where a.attrelid = c.conrelid
              and a.attnum = c.conkey[1]
              and a.attname = 'conversation_group_id')))
    then
      perform sb_internal._raise('SB002', array[_close_state_table.table_name,
        'only its key may reference the conversation group']);
    end if;
  end if;
end
$$;
comment on function sb_internal._close_state_table(name, text, boolean) is
  'Last step of create_state_table: takes the lent right back and makes sure that it was used for the key alone. Error SB002.';
revoke all on function sb_internal._close_state_table(name, text, boolean) from public;
