-- The plans may be from a time of few conversations, or by statistics of such a time: the settings leave
-- nothing but indexes. jit: what the settings make expensive on paper would be compiled, for longer than it
-- runs.
create or replace function sb_internal._drop_service(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  object record;
  used_by text;
  conversation uuid;
begin
  perform sb_internal._require_read_committed('drop_service');
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('service', _drop_service.name, _drop_service.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_service.caller, object.owner, 'drop service ' || _drop_service.name);
  perform sb_internal._require_user_object(object.id, 'service ' || _drop_service.name);
  select p.name
    into used_by
    from sb_internal.conversation_priority as p
   where p.local_service_id = object.id
   limit 1;
  if found then
    perform sb_internal._raise('S3716', array['service ' || _drop_service.name, 'broker priority ' || used_by]);
  end if;

  foreach conversation in array sb_internal._lock_conversations('service', _drop_service.name, object.id) loop
    perform sb_internal._terminate(conversation, -8470,
      'The service "' || _drop_service.name || '" was dropped.');
  end loop;
  delete from sb_internal.service as s
   where s.service_id = object.id;
  perform sb_internal._sync_privileges(object.owner || object.acl);
  perform sb_internal._announce('service_dropped', 'service', _drop_service.name);
end
$$;
comment on function sb_internal._drop_service(name, text, boolean) is
  'DROP SERVICE behind sb.drop_service.';
revoke all on function sb_internal._drop_service(name, text, boolean) from public;
