create or replace function sb_internal._change_admin(caller name, role name, is_granted boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  list name[];
begin
  perform sb_internal._require_admin(_change_admin.caller,
    case when _change_admin.is_granted then 'make admins' else 'revoke admins' end);
  perform sb_internal._lock_catalog();
  select b.admins
    into list
    from sb_internal.broker as b
   where b.singleton;
  if _change_admin.role = 'public' then
    perform sb_internal._raise('22023', array['public cannot be an admin']);
  elsif _change_admin.is_granted or _change_admin.role = any (list) is not true then
    perform sb_internal._require_role(_change_admin.role);
  end if;
  list := array_remove(list, _change_admin.role);
  if _change_admin.is_granted then
    list := list || _change_admin.role;
  end if;
  update sb_internal.broker as b
     set admins = list
   where b.singleton;
  perform sb_internal._sync_privileges(array[_change_admin.role]);
end
$$;
comment on function sb_internal._change_admin(name, name, boolean) is
  'Behind sb.grant_admin and sb.revoke_admin.';
revoke all on function sb_internal._change_admin(name, name, boolean) from public;
