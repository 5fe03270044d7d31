create or replace function sb_internal._take_reader(
  caller name,
  queue_id integer,
  max_readers integer,
  for_session boolean
)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  slots integer;
  is_admin boolean;
begin
  -- Asked before every receive, so the usual answers first: the owner of sb, and so of this function, or by name.
  select coalesce(least(q.max_readers, _take_reader.max_readers), 1),
         _take_reader.caller = current_user or _take_reader.caller = any (b.admins)
    into slots, is_admin
    from sb_internal.queue as q
   cross join sb_internal.broker as b
   where q.queue_id = _take_reader.queue_id;
  if is_admin is not true then
    perform sb_internal._require_admin(_take_reader.caller, 'take a reader slot');
  end if;
  for slot in 0 .. coalesce(slots, 0) - 1 loop
    if (case when _take_reader.for_session
         then pg_try_advisory_lock(sb_internal._reader_slot(_take_reader.queue_id, slot))
         else pg_try_advisory_xact_lock(sb_internal._reader_slot(_take_reader.queue_id, slot)) end)
    then
      return true;
    end if;
  end loop;
  return false;
end
$$;
comment on function sb_internal._take_reader(name, integer, integer, boolean) is
  'The reader limit behind sb.take_reader.';
revoke all on function sb_internal._take_reader(name, integer, integer, boolean) from public;
