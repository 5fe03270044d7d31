create or replace function sb.grant_admin(role name)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_admin(current_user, grant_admin.role, true);
end;
comment on function sb.grant_admin(name) is
  'Makes a role an admin: it may run every DDL verb and sees and ends everything, as the owner of sb does; members of the role inherit that. Admins only. Errors: 42501, 42704 no such role, 22023 public. Locks: the catalog.';
revoke all on function sb.grant_admin(name) from public;
