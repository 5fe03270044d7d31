create or replace function sb_internal._probe_queue(caller name, queue_id integer)
  returns bigint
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  levels smallint[];
  conversation uuid;
  head bigint;
begin
  perform sb_internal._require_admin(_probe_queue.caller, 'run an activator');
  if not coalesce(sb_internal._queue_is_on(_probe_queue.queue_id), false) then
    return null;
  end if;
  select b.priority_levels into levels from sb_internal.broker as b where b.singleton;
  -- What could be received is what could be locked; the subtransaction gives the lock back.
  begin
    select g.conversation_handle
      into conversation
      from sb_internal._next_group(_probe_queue.queue_id, levels) as g;
    if conversation is null then
      return null;
    end if;
    select hashtextextended(concat_ws(' ', conversation, min(r.rank)), 0)
      into head
      from (
        (select m.queuing_order::numeric as rank
          from sb_internal.message as m
         where m.conversation_handle = conversation
         order by m.message_sequence_number
         limit 1)
        union all
        select extract(epoch from d.due_at)
          from sb_internal.due as d
         where d.conversation_handle = conversation
           and d.due_at <= sb_internal._now()) as r;
    perform sb_internal._raise('SB003');
  exception
    when sqlstate 'SB003' then
      null;
  end;
  return head;
end
$$;
comment on function sb_internal._probe_queue(name, integer) is
  'A look at what the next receive would get, behind sb.probe_queue.';
revoke all on function sb_internal._probe_queue(name, integer) from public;
