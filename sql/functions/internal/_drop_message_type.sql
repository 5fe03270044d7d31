create or replace function sb_internal._drop_message_type(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  used_by text;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('message type', _drop_message_type.name, _drop_message_type.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_message_type.caller, object.owner,
    'drop message type ' || _drop_message_type.name);
  perform sb_internal._require_user_object(object.id, 'message type ' || _drop_message_type.name);
  select c.name
    into used_by
    from sb_internal.contract_message as m
    join sb_internal.contract as c on c.service_contract_id = m.service_contract_id
   where m.message_type_id = object.id
   order by c.name
   limit 1;
  if found then
    perform sb_internal._raise('S3716', array['message type ' || _drop_message_type.name, 'contract ' || used_by]);
  end if;
  delete from sb_internal.message_type as t
   where t.message_type_id = object.id;
  perform sb_internal._sync_privileges(object.owner || object.acl);
end
$$;
comment on function sb_internal._drop_message_type(name, text, boolean) is
  'DROP MESSAGE TYPE behind sb.drop_message_type.';
revoke all on function sb_internal._drop_message_type(name, text, boolean) from public;
