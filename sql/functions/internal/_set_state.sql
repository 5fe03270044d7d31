create or replace function sb_internal._set_state(
  caller name,
  conversation_group_id uuid,
  state jsonb
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  loop
    perform 1
       from sb.conversation_group as g
      where g.conversation_group_id = _set_state.conversation_group_id
        for no key update;
    -- The group that we waited for may have gone, and another one with its id be there: that one, then.
    exit when found or not exists (
      select 1
        from sb.conversation_group as g
       where g.conversation_group_id = _set_state.conversation_group_id);
  end loop;
  perform sb_internal._may_use_group(_set_state.caller, _set_state.conversation_group_id);
  if _set_state.state is null then
    delete from sb_internal.state as s
     where s.conversation_group_id = _set_state.conversation_group_id;
  else
    insert into sb_internal.state (conversation_group_id, state)
    values (_set_state.conversation_group_id, _set_state.state)
    on conflict on constraint state_pkey do update
       set state = excluded.state;
  end if;
end
$$;
comment on function sb_internal._set_state(name, uuid, jsonb) is
  'sb.set_state with the caller''s rights checked.';
revoke all on function sb_internal._set_state(name, uuid, jsonb) from public;
