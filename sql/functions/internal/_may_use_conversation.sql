create or replace function sb_internal._may_use_conversation(
  caller name,
  e sb_internal.endpoint,
  verb text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select 1
      from sb_internal.service as s
      join sb_internal.queue as q on q.queue_id = s.queue_id
     where s.service_id = e.service_id
       and (q.owner = _may_use_conversation.caller
         or _may_use_conversation.caller = any (q.receivers)
         or sb_internal._may(_may_use_conversation.caller, q.owner, q.receivers)))
  then
    perform sb_internal._raise('42501', array[_may_use_conversation.caller::text,
      _may_use_conversation.verb || ' this conversation'],
      'conversation_handle=' || e.conversation_handle);
  end if;
end
$$;
comment on function sb_internal._may_use_conversation(name, sb_internal.endpoint, text) is
  'Error 42501 unless the caller may receive from the queue of the conversation''s service, which is the right to use its conversations.';
revoke all on function sb_internal._may_use_conversation(name, sb_internal.endpoint, text) from public;
