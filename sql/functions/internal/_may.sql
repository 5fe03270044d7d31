create or replace function sb_internal._may(caller name, owner name, acl name[])
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _may.caller = _may.owner or _may.caller = any (_may.acl) or 'public' = any (_may.acl) then
    return true;
  end if;
  -- Membership, by name: lists may hold roles that a restore did not bring along.
  return exists (
      select 1
        from unnest(_may.acl || _may.owner) as a (role)
       where pg_has_role(to_regrole(quote_ident(_may.caller)), to_regrole(quote_ident(a.role)), 'usage'))
    or sb_internal._is_admin(_may.caller);
end
$$;
comment on function sb_internal._may(name, name, name[]) is
  'Whether the caller has a right: he is the owner, in the list (public stands for everybody), has the rights of one who is, or is an admin. Roles that do not exist have none.';
revoke all on function sb_internal._may(name, name, name[]) from public;
