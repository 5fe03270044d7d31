create or replace function sb_internal._undeliverable(service_name text, broker_instance text default null)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  address text;
  target record;
begin
  if not (select b.is_broker_enabled from sb_internal.broker as b where b.singleton) then
    return 'The broker is disabled in this database.';
  end if;
  address := sb_internal._route(_undeliverable.service_name, _undeliverable.broker_instance);
  if address is null then
    return 'No route matches the destination service "' || _undeliverable.service_name || '".';
  end if;
  if address <> 'LOCAL' then
    return 'Waiting to be transmitted to ' || address || '.';
  end if;
  select q.queue_id, q.name
    into target
    from sb_internal.service as s
    join sb_internal.queue as q on q.queue_id = s.queue_id
   where s.name = _undeliverable.service_name;
  if not found then
    return 'The destination service "' || _undeliverable.service_name || '" does not exist.';
  end if;
  if not sb_internal._queue_is_on(target.queue_id) then
    return 'The destination queue "' || target.name || '" is disabled.';
  end if;
  return null;
end
$$;
comment on function sb_internal._undeliverable(text, text) is
  'Why nothing can be delivered to the service now, in words; null when it can.';
revoke all on function sb_internal._undeliverable(text, text) from public;
