create or replace function sb_internal._open_state_table(caller name, drop_on_end boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _open_state_table.drop_on_end then
    -- The key makes every END in the database look into the table, so its triggers and locks are everybody's
    -- affair: nothing for those who may only send to a service or use a contract.
    if cardinality(sb_internal._visible(_open_state_table.caller, 'queue')) = 0 then
      perform sb_internal._raise('42501', array[_open_state_table.caller::text,
        'receive from any queue, and so not create state tables with drop_on_end']);
    end if;
    -- One at a time: rights on the one column come and go inside this transaction only.
    perform pg_advisory_xact_lock(8422, 0);
    execute format('grant references (conversation_group_id) on sb.conversation_group to %I', _open_state_table.caller);
  end if;
end
$$;
comment on function sb_internal._open_state_table(name, boolean) is
  'First step of create_state_table: lends the caller, who may receive from some queue, REFERENCES on the group id. Waits for another create_state_table. Error 42501.';
revoke all on function sb_internal._open_state_table(name, boolean) from public;
