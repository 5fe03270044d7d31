create or replace function sb_internal._json_decode(body bytea)
  returns text
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return convert_from(
    case
      when substr(_json_decode.body, 1, 3) = '\xefbbbf'::bytea then substr(_json_decode.body, 4)
      else _json_decode.body
    end,
    'UTF8'
  );
exception
  when character_not_in_repertoire or untranslatable_character then
    return null;
end
$$;
comment on function sb_internal._json_decode(bytea) is
  'The characters of a JSON body, which is UTF-8, without a byte order mark. NULL when it is not UTF-8 or holds a NUL.';
revoke all on function sb_internal._json_decode(bytea) from public;
