create or replace function sb_internal._require_user_object(id integer, what text)
  returns void
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _require_user_object.id < 65536 then
    perform sb_internal._raise('S9663', array[_require_user_object.what]);
  end if;
end
$$;
comment on function sb_internal._require_user_object(integer, text) is
  'Error S9663 when the id is one of the system''s (R-011, R-012).';
revoke all on function sb_internal._require_user_object(integer, text) from public;
