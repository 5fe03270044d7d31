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
    -- The key makes every END in the database run the triggers of the table, in the session of whoever ends: they
    -- may leave a search_path or temporary tables behind there. So whose they are is for those to say whose code
    -- runs in the sessions of others anyway, as that of a validator does.
    perform sb_internal._require_admin(_open_state_table.caller, 'create state tables with drop_on_end');
    -- One at a time: rights on the one column come and go inside this transaction only.
    perform pg_advisory_xact_lock(8422, 0);
    execute format('grant references (conversation_group_id) on sb.conversation_group to %I', _open_state_table.caller);
  end if;
end
$$;
comment on function sb_internal._open_state_table(name, boolean) is
  'First step of create_state_table: lends the caller, who has to be an admin, REFERENCES on the group id. Waits for another create_state_table. Error 42501.';
revoke all on function sb_internal._open_state_table(name, boolean) from public;
