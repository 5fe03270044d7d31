create or replace function sb_internal._tie_loose_ends()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
as $$
declare
  l sb_internal.loose_end;
  e sb_internal.endpoint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return;
  end if;
  for l in
    select o.*
      from sb_internal.loose_end as o
     order by o.loose_end_id
     limit 10000
       for update skip locked
  loop
    -- Those who have the conversation or the group at work come first: another time.
    perform 1
       from sb.conversation_group as g
      where g.conversation_group_id = l.conversation_group_id
        for no key update skip locked;
    continue when not found and exists (
      select 1
        from sb.conversation_group as g
       where g.conversation_group_id = l.conversation_group_id);
    select o.*
      into e
      from sb_internal.endpoint as o
     where o.conversation_handle = l.conversation_handle
       and o.state <> 'DO';
    if found then
      -- Moved, and perhaps once more since.
      perform 1
         from sb.conversation_group as g
        where g.conversation_group_id = e.conversation_group_id
          for no key update skip locked;
      continue when not found;
      update sb_internal.due as d
         set conversation_group_id = o.conversation_group_id
        from sb_internal.endpoint as o
       where o.conversation_handle = l.conversation_handle
         and d.conversation_handle = l.conversation_handle
         and d.conversation_group_id <> o.conversation_group_id;
      update sb_internal.retained_message as r
         set conversation_group_id = o.conversation_group_id
        from sb_internal.endpoint as o
       where o.conversation_handle = l.conversation_handle
         and r.conversation_handle = l.conversation_handle
         and r.conversation_group_id <> o.conversation_group_id;
    else
      delete from sb_internal.due as d
       where d.conversation_handle = l.conversation_handle;
      delete from sb_internal.retained_message as r
       where r.conversation_handle = l.conversation_handle;
      delete from sb_internal.receive_cursor as c
       where c.conversation_handle = l.conversation_handle;
    end if;
    perform sb_internal._leave_group(l.conversation_handle, l.conversation_group_id);
    delete from sb_internal.loose_end as o
     where o.loose_end_id = l.loose_end_id;
  end loop;
end
$$;
comment on function sb_internal._tie_loose_ends() is
  'Does for conversations that were ended or moved above read committed what those transactions could not: deletes or moves the rows that they did not see, and removes groups that are empty. Waits for nobody; at most 10000 a call.';
revoke all on function sb_internal._tie_loose_ends() from public;
