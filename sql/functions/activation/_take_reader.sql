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
begin
  perform sb_internal._require_admin(_take_reader.caller, 'take a reader slot');
  select coalesce(least(q.max_readers, _take_reader.max_readers), 1)
    into slots
    from sb_internal.queue as q
   where q.queue_id = _take_reader.queue_id;
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
