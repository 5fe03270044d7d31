create or replace function sb_internal._json_value(body bytea)
  returns jsonb
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return convert_from(
    case
      when substr(_json_value.body, 1, 3) = e'\\xefbbbf'::bytea then substr(_json_value.body, 4)
      else _json_value.body
    end,
    'UTF8'
  )::jsonb;
exception
  -- Beyond syntax: \u0000 and lone surrogates, numbers and values too large, nesting too deep.
  when character_not_in_repertoire or untranslatable_character or invalid_text_representation
    or numeric_value_out_of_range or program_limit_exceeded or statement_too_complex then
    return null;
end
$$;
comment on function sb_internal._json_value(bytea) is
  'A JSON body as the jsonb that a validator gets; SQL NULL when it is not well formed or jsonb cannot hold it (\u0000, a lone surrogate, a number beyond numeric), which VALID_JSON counts as not valid. Raises nothing.';
revoke all on function sb_internal._json_value(bytea) from public;
