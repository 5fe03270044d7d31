create or replace function sb_internal._claim_due(
  queue_id integer,
  level smallint,
  out conversation_group_id uuid,
  out conversation_handle uuid
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  candidate record;
  tried uuid[] := '{}'::uuid[];
begin
  for candidate in
    select d.conversation_handle, d.conversation_group_id, d.due_at
      from sb_internal.due as d
     where d.queue_id = _claim_due.queue_id
       and d.priority = _claim_due.level
     order by d.due_at
     limit 300
  loop
    exit when candidate.due_at > clock_timestamp();
    continue when candidate.conversation_group_id = any (tried);
    conversation_group_id := sb_internal._claim(candidate.conversation_handle);
    if conversation_group_id is not null then
      conversation_handle := candidate.conversation_handle;
      return;
    end if;
    tried := tried || candidate.conversation_group_id;
  end loop;
end
$$;
comment on function sb_internal._claim_due(integer, smallint) is
  'Locks the group of the timer or lifetime that has been due for longest and can be had, see _claim; null when there is none.';
revoke all on function sb_internal._claim_due(integer, smallint) from public;
