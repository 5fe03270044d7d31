create or replace function sb_internal._waiting(
  caller name,
  queue_name text,
  is_start boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  q record;
begin
  select o.queue_id, o.name, o.owner, o.receivers
    into q
    from sb_internal.queue as o
   where o.name = _waiting.queue_name;
  if not found then
    perform sb_internal._require_name(_waiting.queue_name, 'queue', 128);
    perform sb_internal._raise('S0208', array[_waiting.queue_name]);
  end if;
  if not sb_internal._may(_waiting.caller, q.owner, q.receivers) then
    perform sb_internal._raise('42501', array[_waiting.caller::text, 'receive from queue ' || q.name]);
  end if;
  if not _waiting.is_start then
    perform pg_advisory_unlock_shared(8420, q.queue_id);
    return;
  end if;
  -- A sender holds the lock exclusively for a microsecond; waiting for it in the lock queue would make
  -- that sender notify nobody.
  while not pg_try_advisory_lock_shared(8420, q.queue_id) loop
    perform pg_sleep(0.0001);
  end loop;
end
$$;
comment on function sb_internal._waiting(name, text, boolean) is
  'Raises or lowers the waiting flag of a queue: a shared session advisory lock, which counts waiters and dies with the session.';
revoke all on function sb_internal._waiting(name, text, boolean) from public;
