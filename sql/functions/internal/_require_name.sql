create or replace function sb_internal._require_name(value text, kind text, max_length integer)
  returns void
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _require_name.value is null or char_length(_require_name.value) not between 1 and _require_name.max_length then
    perform sb_internal._raise('42602', array[
      _require_name.kind,
      case when _require_name.value is null then '(null)' when _require_name.value = '' then '(empty)'
        else left(_require_name.value, 256) end,
      _require_name.max_length::text]);
  end if;
end
$$;
comment on function sb_internal._require_name(text, text, integer) is
  'Error 42602 unless the name has 1 to max_length characters (not bytes).';
revoke all on function sb_internal._require_name(text, text, integer) from public;
