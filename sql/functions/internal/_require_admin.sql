create or replace function sb_internal._require_admin(caller name, what text)
  returns void
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not sb_internal._is_admin(_require_admin.caller) then
    perform sb_internal._raise('42501', array[_require_admin.caller::text, _require_admin.what]);
  end if;
end
$$;
comment on function sb_internal._require_admin(name, text) is
  'Error 42501 "role … may not <what>" unless the caller is an admin.';
revoke all on function sb_internal._require_admin(name, text) from public;
