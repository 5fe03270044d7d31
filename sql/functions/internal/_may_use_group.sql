create or replace function sb_internal._may_use_group(caller name, conversation_group_id uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  q record;
begin
  if _may_use_group.conversation_group_id is null then
    perform sb_internal._raise('S8420');
  end if;
  select o.name, o.owner, o.receivers
    into q
    from sb.conversation_group as g
    join sb_internal.service as s on s.service_id = g.service_id
    join sb_internal.queue as o on o.queue_id = s.queue_id
   where g.conversation_group_id = _may_use_group.conversation_group_id;
  if not found then
    perform sb_internal._raise('S8436', array[_may_use_group.conversation_group_id::text]);
  end if;
  if not sb_internal._may(_may_use_group.caller, q.owner, q.receivers) then
    perform sb_internal._raise('42501', array[_may_use_group.caller::text, 'receive from queue ' || q.name]);
  end if;
end
$$;
comment on function sb_internal._may_use_group(name, uuid) is
  'Error unless the group exists (S8436) and the caller may receive from its queue (42501).';
revoke all on function sb_internal._may_use_group(name, uuid) from public;
