create or replace function sb_internal._cancel_conversation_timer(caller name, conversation_handle uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint := sb_internal._hold_conversation(_cancel_conversation_timer.conversation_handle);
begin
  perform sb_internal._may_use_conversation(_cancel_conversation_timer.caller, e, 'cancel the timer of');
  if e.state = 'DO' then
    perform sb_internal._raise('S8458', array[e.conversation_handle::text, e.state]);
  end if;
  delete from sb_internal.due as d
   where d.conversation_handle = e.conversation_handle
     and not d.is_lifetime;
end
$$;
comment on function sb_internal._cancel_conversation_timer(name, uuid) is
  'Cancels the timer behind sb.cancel_conversation_timer.';
revoke all on function sb_internal._cancel_conversation_timer(name, uuid) from public;
