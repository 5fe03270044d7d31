create or replace function sb_internal._lock_named_group(
  queue_id integer,
  for_conversation uuid,
  for_group uuid,
  timeout interval,
  deadline timestamptz
)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  named uuid := _lock_named_group.for_group;
  nap double precision := 0.005::double precision;
begin
  loop
    if _lock_named_group.for_conversation is not null then
      select e.conversation_group_id
        into named
        from sb_internal.endpoint as e
        join sb_internal.service as s on s.service_id = e.service_id
       where e.conversation_handle = _lock_named_group.for_conversation
         and e.state <> 'DO'
         and s.queue_id = _lock_named_group.queue_id
         and exists (
           select 1
             from sb.conversation_group as g
            where g.conversation_group_id = e.conversation_group_id);  -- see _lock_group_of
      if not found then
        perform sb_internal._raise('S8426', array[_lock_named_group.for_conversation::text]);
      end if;
    elsif not exists (
      select 1
        from sb.conversation_group as g
        join sb_internal.service as s on s.service_id = g.service_id
       where g.conversation_group_id = named
         and s.queue_id = _lock_named_group.queue_id)
    then
      -- A program that receives from a group until nothing is left may end its last conversation on the way. In
      -- SQL Server the ended side keeps the group for a while (R-246), and the next receive finds it empty.
      if _lock_named_group.deadline is null
        and position(named::text in current_setting('sbroker.left_group', true)) > 0
      then
        return null;
      end if;
      perform sb_internal._raise('S8436', array[named::text]);
    end if;

    -- Who waits for a message must not keep others from the conversation meanwhile: they may end it, set its
    -- timer, drop its service. So nothing is locked before there is something to take, and what is not there
    -- any more when the lock has come is one of the reasons to give it back.
    if _lock_named_group.deadline > sb_internal._now()
      and not sb_internal._has_message(_lock_named_group.for_conversation, named)
    then
      return null;
    end if;

    -- As in _lock_group_of: a lock that turns out to be of the wrong group, or too late, is not kept.
    begin
      if _lock_named_group.timeout is null or _lock_named_group.deadline = 'infinity' then
        -- No limit: wait as everybody waits, in the lock queue.
        perform 1
           from sb.conversation_group as g
          where g.conversation_group_id = named
            for no key update;
      else
        perform 1
           from sb.conversation_group as g
          where g.conversation_group_id = named
            for no key update skip locked;
      end if;
      if found then
        perform 1
           from sb.conversation_group as g
           join sb_internal.service as s on s.service_id = g.service_id
           join sb_internal.queue as q on q.queue_id = s.queue_id
          where g.conversation_group_id = named
            and q.queue_id = _lock_named_group.queue_id
            and q.is_enabled
            and (_lock_named_group.for_conversation is null
              or exists (
                select 1
                  from sb_internal.endpoint as e
                 where e.conversation_handle = _lock_named_group.for_conversation
                   and e.conversation_group_id is not distinct from named
                   and e.state <> 'DO'));
        if not found or (_lock_named_group.deadline > sb_internal._now()
          and not sb_internal._has_message(_lock_named_group.for_conversation, named))
        then
          perform sb_internal._raise('SB003');
        end if;
        return named;
      end if;
    exception
      when sqlstate 'SB003' then
        null;
    end;

    if _lock_named_group.timeout is not null and _lock_named_group.deadline is distinct from 'infinity' then
      exit when coalesce(sb_internal._now() >= _lock_named_group.deadline, true);
      perform pg_sleep(greatest(0, least(nap, extract(epoch from _lock_named_group.deadline - sb_internal._now()))));
      nap := least(nap * 1.5, 0.25);
    end if;
    -- After any wait all is looked at again: the conversation may have ended or moved, the queue be off.
    perform sb_internal._raise('S9617', array[q.name], sb_internal._stopped_by(q.queue_id))
       from sb_internal.queue as q
      where q.queue_id = _lock_named_group.queue_id
        and not q.is_enabled;
  end loop;
  return null;
end
$$;
comment on function sb_internal._lock_named_group(integer, uuid, uuid, interval, timestamptz) is
  'Locks the group of receives for_conversation or for_group: waits without limit when no timeout is given, else up to the deadline, then null. Null at once, and no lock, while the deadline has not come and there is nothing to take: the caller looks again. Null as well for a group that this transaction has ended. Errors: S8426, S8436 also for those of another queue.';
revoke all on function sb_internal._lock_named_group(integer, uuid, uuid, interval, timestamptz) from public;
