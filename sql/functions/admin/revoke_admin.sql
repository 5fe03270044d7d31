create or replace function sb.revoke_admin(role name)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_admin(current_user, revoke_admin.role, false);
end;
comment on function sb.revoke_admin(name) is
  'Takes sb.grant_admin back; nothing happens when the role is no admin. Admins only. Errors: 42501, 42704 no such role. Locks: the catalog.';
revoke all on function sb.revoke_admin(name) from public;
