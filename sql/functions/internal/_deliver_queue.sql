create or replace function sb_internal._deliver_queue(caller name, queue_name text)
  returns bigint
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  named integer;
begin
  perform sb_internal._require_admin(_deliver_queue.caller, 'deliver');
  if _deliver_queue.queue_name is not null then
    select q.queue_id
      into named
      from sb_internal.queue as q
     where q.name = _deliver_queue.queue_name;
    if not found then
      perform sb_internal._raise('S0208', array[_deliver_queue.queue_name]);
    end if;
  end if;
  perform sb_internal._write_poison_limits();
  return sb_internal._deliver(named, null);
end
$$;
comment on function sb_internal._deliver_queue(name, text) is
  'sb.deliver with the caller''s rights checked.';
revoke all on function sb_internal._deliver_queue(name, text) from public;
