create or replace function sb_internal._clear_back_off(caller name, conversation_group_id uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_clear_back_off.caller, 'back off a conversation group');
  delete from sb_internal.group_backoff as b
   where b.conversation_group_id = _clear_back_off.conversation_group_id;
end
$$;
comment on function sb_internal._clear_back_off(name, uuid) is
  'End of back-off behind sb.clear_back_off.';
revoke all on function sb_internal._clear_back_off(name, uuid) from public;
