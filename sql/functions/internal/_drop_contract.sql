-- The plans may be from a time of few conversations, or by statistics of such a time: the settings leave
-- nothing but indexes. jit: what the settings make expensive on paper would be compiled, for longer than it
-- runs.
create or replace function sb_internal._drop_contract(caller name, name text, if_exists boolean)
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
  handles uuid[];
  conversation uuid;
begin
  perform sb_internal._require_read_committed('drop_contract');
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('contract', _drop_contract.name, _drop_contract.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_contract.caller, object.owner, 'drop contract ' || _drop_contract.name);
  perform sb_internal._require_user_object(object.id, 'contract ' || _drop_contract.name);
  select coalesce(
    (select 'service ' || s.name
       from sb_internal.service_contract as c
       join sb_internal.service as s on s.service_id = c.service_id
      where c.service_contract_id = object.id
      limit 1),
    (select 'broker priority ' || p.name
       from sb_internal.conversation_priority as p
      where p.service_contract_id = object.id
      limit 1))
    into used_by;
  if used_by is not null then
    perform sb_internal._raise('S3716', array['contract ' || _drop_contract.name, used_by]);
  end if;

  -- Of two sides in this database one goes and the other is told; terminating both would tell nobody.
  handles := sb_internal._lock_conversations('contract', _drop_contract.name, object.id);
  for conversation in
    select e.conversation_handle
      from sb_internal.endpoint as e
     where e.conversation_handle = any (handles)
       and (e.is_initiator
         or not exists (
           select 1
             from sb_internal.endpoint as p
            where p.conversation_handle = e.peer_handle))
     order by e.conversation_handle
  loop
    perform sb_internal._terminate(conversation, -8487,
      'The contract "' || _drop_contract.name || '" of the conversation was dropped.');
  end loop;
  delete from sb_internal.contract as c
   where c.service_contract_id = object.id;
  perform sb_internal._sync_privileges(object.owner || object.acl);
end
$$;
comment on function sb_internal._drop_contract(name, text, boolean) is
  'DROP CONTRACT behind sb.drop_contract.';
revoke all on function sb_internal._drop_contract(name, text, boolean) from public;
