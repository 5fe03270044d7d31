create or replace function sb_internal._require_free_name(kind text, name text, taken boolean, if_not_exists boolean)
  returns boolean
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _require_free_name.taken and _require_free_name.if_not_exists is not true then
    perform sb_internal._raise('42710', array[_require_free_name.kind, _require_free_name.name]);
  end if;
  return not _require_free_name.taken;
end
$$;
comment on function sb_internal._require_free_name(text, text, boolean, boolean) is
  'Whether a create verb has to create: false when the name is taken and if_not_exists accepts that. Error 42710.';
revoke all on function sb_internal._require_free_name(text, text, boolean, boolean) from public;
