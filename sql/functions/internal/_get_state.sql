create or replace function sb_internal._get_state(caller name, conversation_group_id uuid)
  returns jsonb
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._may_use_group(_get_state.caller, _get_state.conversation_group_id);
  return (
    select s.state
      from sb_internal.state as s
     where s.conversation_group_id = _get_state.conversation_group_id);
end
$$;
comment on function sb_internal._get_state(name, uuid) is
  'sb.get_state with the caller''s rights checked.';
revoke all on function sb_internal._get_state(name, uuid) from public;
