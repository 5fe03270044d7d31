create or replace function sb_internal._require_run_as(caller name, role name)
  returns void
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regrole(quote_ident(_require_run_as.role)) is null then
    perform sb_internal._raise('S9613', array[_require_run_as.role::text]);
  end if;
  if not sb_internal._may_become(_require_run_as.caller, _require_run_as.role) then
    perform sb_internal._raise('42501', array[_require_run_as.caller::text,
      'let an activation procedure run as role ' || _require_run_as.role],
      case
        when (
          select r.rolsuper
            from pg_roles as r
           where r.rolname = _require_run_as.role)
        then 'reason=a superuser'
        else format('cure=grant %I to %I', _require_run_as.role, _require_run_as.caller)
      end);
  end if;
end
$$;
comment on function sb_internal._require_run_as(name, name) is
  'Who chooses what runs as a role must be able to SET ROLE to it, else an admin could act as anybody. Errors: S9613 no such role, 42501.';
revoke all on function sb_internal._require_run_as(name, name) from public;
