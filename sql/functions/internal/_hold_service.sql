create or replace function sb_internal._hold_service(service_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform 1
       from sb_internal.service as s
      where s.service_id = _hold_service.service_id
        for share;
  end if;
end
$$;
comment on function sb_internal._hold_service(integer) is
  'For whoever puts something into the queue of a service: above read committed fails (40001) when alter_service has given it another queue since the snapshot, and keeps it from doing so. In read committed the lock of the message table does that.';
revoke all on function sb_internal._hold_service(integer) from public;
