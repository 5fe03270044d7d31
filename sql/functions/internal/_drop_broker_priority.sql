create or replace function sb_internal._drop_broker_priority(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
begin
  perform sb_internal._require_admin(_drop_broker_priority.caller, 'drop broker priorities');
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('broker priority', _drop_broker_priority.name, _drop_broker_priority.if_exists);
  delete from sb_internal.conversation_priority as p
   where p.priority_id = object.id;
end
$$;
comment on function sb_internal._drop_broker_priority(name, text, boolean) is
  'DROP BROKER PRIORITY behind sb.drop_broker_priority.';
revoke all on function sb_internal._drop_broker_priority(name, text, boolean) from public;
