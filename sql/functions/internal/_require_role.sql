create or replace function sb_internal._require_role(role name)
  returns void
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regrole(quote_ident(_require_role.role)) is null then
    perform sb_internal._raise('42704', array['role', coalesce(_require_role.role::text, '(null)')]);
  end if;
end
$$;
comment on function sb_internal._require_role(name) is
  'Error 42704 unless the role exists; public is no role here.';
revoke all on function sb_internal._require_role(name) from public;
