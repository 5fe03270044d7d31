create or replace function sb_internal._set_option(caller name, name text, value text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  is_on boolean := case _set_option.value when 'on' then true when 'off' then false end;
begin
  perform sb_internal._require_admin(_set_option.caller, 'set options');
  perform sb_internal._lock_catalog();
  if _set_option.name = 'system_names' and _set_option.value in ('documented', 'sqlserver') then
    update sb_internal.broker as b
       set system_names = _set_option.value
     where b.singleton;
  elsif _set_option.name = 'honor_broker_priority' and is_on is not null then
    update sb_internal.broker as b
       set is_honor_broker_priority_on = is_on
     where b.singleton;
  elsif _set_option.name = 'validate_on_send' and is_on is not null then
    update sb_internal.broker as b
       set is_validate_on_send = is_on
     where b.singleton;
  elsif _set_option.name = 'poison_message_threshold' and _set_option.value ~ '^0*[1-9][0-9]{0,8}$' then
    update sb_internal.broker as b
       set poison_message_threshold = _set_option.value::integer
     where b.singleton;
    -- Who is one rollback away from the limit has changed: everybody has to look.
    perform setval(('sb_internal.queue_' || q.queue_id || '_poison_alarm')::regclass, 1),
            setval(('sb_internal.queue_' || q.queue_id || '_search')::regclass, 0)
       from sb_internal.queue as q;
  elsif _set_option.name in ('system_names', 'honor_broker_priority', 'validate_on_send', 'poison_message_threshold') then
    perform sb_internal._raise('22023', array[format('option %s does not take the value %s', _set_option.name,
      coalesce(_set_option.value, '(null)'))]);
  else
    perform sb_internal._raise('22023', array['there is no option ' || coalesce(_set_option.name, '(null)')]);
  end if;
  perform sb_internal._announce('option_set', 'option', _set_option.name);
end
$$;
comment on function sb_internal._set_option(name, text, text) is
  'Behind sb.set_option.';
revoke all on function sb_internal._set_option(name, text, text) from public;
