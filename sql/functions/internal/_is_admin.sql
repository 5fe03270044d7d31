create or replace function sb_internal._is_admin(caller name)
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- to_regrole gives null for a role that is gone, and pg_has_role null for null: no such name raises.
  -- A superuser has the rights of every role, so he needs no case of his own.
  return exists (
    select 1
      from sb_internal.broker as b
      join pg_namespace as n on n.nspname = 'sb_internal'
     cross join lateral unnest(b.admins || pg_get_userbyid(n.nspowner)) as a (role)
     where b.singleton
       and pg_has_role(to_regrole(quote_ident(_is_admin.caller)), to_regrole(quote_ident(a.role)), 'usage'));
end
$$;
comment on function sb_internal._is_admin(name) is
  'Whether the role may run every DDL verb and sees everything: the owner of sb, a role granted admin, a member of one of them, a superuser. False for a role that does not exist.';
revoke all on function sb_internal._is_admin(name) from public;
