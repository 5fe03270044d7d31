create or replace function sb_internal._may_become(caller name, role name)
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- From PostgreSQL 16 on there are members that may not SET ROLE.
  return pg_has_role(_may_become.caller, _may_become.role,
    case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end);
end
$$;
comment on function sb_internal._may_become(name, name) is
  'Whether the caller may SET ROLE to a role that exists.';
revoke all on function sb_internal._may_become(name, name) from public;
