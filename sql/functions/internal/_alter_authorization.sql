create or replace function sb_internal._alter_authorization(
  caller name,
  kind text,
  name text,
  new_owner name
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  what text := replace(lower(_alter_authorization.kind), '_', ' ');
  object record;
begin
  if what is null or what not in ('message type', 'contract', 'queue', 'service', 'route') then
    perform sb_internal._raise('22023', array['kind ' || coalesce(_alter_authorization.kind, '(null)')
      || ' is none of message_type, contract, queue, service, route']);
  end if;
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup(what, _alter_authorization.name);
  perform sb_internal._require_owner(_alter_authorization.caller, object.owner,
    'alter the owner of ' || what || ' ' || _alter_authorization.name);
  perform sb_internal._require_user_object(object.id, what || ' ' || _alter_authorization.name);
  perform sb_internal._require_role(_alter_authorization.new_owner);
  if not sb_internal._may_become(_alter_authorization.caller, _alter_authorization.new_owner) then
    perform sb_internal._raise('42501', array[_alter_authorization.caller::text,
      'give objects to role ' || _alter_authorization.new_owner],
      format('cure=grant %I to %I', _alter_authorization.new_owner, _alter_authorization.caller));
  end if;

  case what
    when 'message type' then
      update sb_internal.message_type as t
         set owner = _alter_authorization.new_owner
       where t.message_type_id = object.id;
    when 'contract' then
      update sb_internal.contract as c
         set owner = _alter_authorization.new_owner
       where c.service_contract_id = object.id;
    when 'queue' then
      -- What runs as the owner goes on running as the owner, as EXECUTE AS OWNER does.
      update sb_internal.queue as q
         set owner = _alter_authorization.new_owner,
             execute_as = case when q.execute_as = q.owner then _alter_authorization.new_owner else q.execute_as end
       where q.queue_id = object.id;
    when 'service' then
      update sb_internal.service as s
         set owner = _alter_authorization.new_owner
       where s.service_id = object.id;
    when 'route' then
      update sb_internal.route as r
         set owner = _alter_authorization.new_owner
       where r.route_id = object.id;
  end case;
  perform sb_internal._sync_privileges(array[object.owner, _alter_authorization.new_owner]);
end
$$;
comment on function sb_internal._alter_authorization(name, text, text, name) is
  'ALTER AUTHORIZATION behind sb.alter_authorization.';
revoke all on function sb_internal._alter_authorization(name, text, text, name) from public;
