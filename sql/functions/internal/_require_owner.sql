create or replace function sb_internal._require_owner(caller name, owner name, what text)
  returns void
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not sb_internal._may(_require_owner.caller, _require_owner.owner, '{}') then
    perform sb_internal._raise('42501', array[_require_owner.caller::text, _require_owner.what]);
  end if;
end
$$;
comment on function sb_internal._require_owner(name, name, text) is
  'Error 42501 "role … may not <what>" unless the caller is the owner, a member of the owner, or an admin.';
revoke all on function sb_internal._require_owner(name, name, text) from public;
