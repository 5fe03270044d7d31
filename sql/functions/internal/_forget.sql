create or replace function sb_internal._forget(e sb_internal.endpoint, keep_transmission boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  delete from sb_internal.message as m
   where m.conversation_handle = e.conversation_handle;
  delete from sb_internal.retained_message as r
   where r.conversation_handle = e.conversation_handle;
  delete from sb_internal.due as d
   where d.conversation_handle = e.conversation_handle;
  delete from sb_internal.receive_cursor as c
   where c.conversation_handle = e.conversation_handle;
  delete from sb_internal.send_counter as c
   where c.conversation_handle = e.conversation_handle;
  if _forget.keep_transmission then
    update sb_internal.endpoint as o
       set state = 'DO'
     where o.conversation_handle = e.conversation_handle;
  else
    delete from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle;
    delete from sb_internal.endpoint as o
     where o.conversation_handle = e.conversation_handle;
  end if;
  if e.state <> 'DO' then
    perform sb_internal._leave_group(e.conversation_handle, e.conversation_group_id);
  end if;
end
$$;
comment on function sb_internal._forget(sb_internal.endpoint, boolean) is
  'Removes one side of a conversation and everything it owns; with keep_transmission its endpoint stays in DO until its last message has left. The caller holds the locks of _lock_conversation.';
revoke all on function sb_internal._forget(sb_internal.endpoint, boolean) from public;
