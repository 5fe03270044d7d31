create or replace function sb_internal._change_access(
  caller name,
  access text,
  name text,
  role name,
  is_granted boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  kind text := case _change_access.access when 'send' then 'service' when 'receive' then 'queue' else 'contract' end;
  object record;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup(kind, _change_access.name);
  perform sb_internal._require_owner(_change_access.caller, object.owner,
    case when _change_access.is_granted then 'grant ' else 'revoke ' end || _change_access.access || ' on '
      || kind || ' ' || _change_access.name);
  perform sb_internal._require_user_object(object.id, kind || ' ' || _change_access.name);
  -- A role that is gone may still be taken off the list.
  if _change_access.role is distinct from 'public'
    and (_change_access.is_granted or _change_access.role = any (object.acl) is not true)
  then
    perform sb_internal._require_role(_change_access.role);
  end if;

  object.acl := array_remove(object.acl, _change_access.role);
  if _change_access.is_granted then
    object.acl := object.acl || _change_access.role;
  end if;
  case kind
    when 'service' then
      update sb_internal.service as s
         set senders = object.acl
       where s.service_id = object.id;
    when 'queue' then
      update sb_internal.queue as q
         set receivers = object.acl
       where q.queue_id = object.id;
    else
      update sb_internal.contract as c
         set referencers = object.acl
       where c.service_contract_id = object.id;
  end case;
  perform sb_internal._sync_privileges(array[_change_access.role]);
end
$$;
comment on function sb_internal._change_access(name, text, text, name, boolean) is
  'The grant and revoke verbs of services (send), queues (receive) and contracts (references).';
revoke all on function sb_internal._change_access(name, text, text, name, boolean) from public;
