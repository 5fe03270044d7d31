create or replace function sb.set_option(
  name text,
  value text
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._set_option(current_user, set_option.name, set_option.value);
end;
comment on function sb.set_option(text, text) is
  'Sets an option of the broker (view sb.options): system_names documented|sqlserver, honor_broker_priority on|off, validate_on_send on|off, poison_message_threshold 1 or more. Admins only. Errors: 42501, 22023 no such option or value. Locks: the catalog.';
revoke all on function sb.set_option(text, text) from public;
