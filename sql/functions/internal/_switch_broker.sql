create or replace function sb_internal._switch_broker(caller name, is_enabled boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_switch_broker.caller,
    case when _switch_broker.is_enabled then 'enable the broker' else 'disable the broker' end);
  perform sb_internal._lock_catalog();
  update sb_internal.broker as b
     set is_broker_enabled = _switch_broker.is_enabled
   where b.singleton;
  if _switch_broker.is_enabled then
    perform sb_internal._deliver_now(null, null);
  end if;
  perform sb_internal._announce(case when _switch_broker.is_enabled then 'broker_enabled' else 'broker_disabled' end,
    'database', current_database());
end
$$;
comment on function sb_internal._switch_broker(name, boolean) is
  'Behind sb.enable_broker and sb.disable_broker.';
revoke all on function sb_internal._switch_broker(name, boolean) from public;
