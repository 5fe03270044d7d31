-- An absent keyword yields NULL in a comparison, so the if is not taken and the keyword is not
-- applied: that is the rule of JSON Schema. Where a query is needed, ? asks first whether the
-- keyword is there.
create or replace function sb_internal._json_matches(
  schema jsonb,
  value jsonb
)
  returns boolean
  language plpgsql
  immutable
  parallel safe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _schema constant jsonb := _json_matches.schema;
  _value constant jsonb := _json_matches.value;
  _kind constant text := jsonb_typeof(_value);
  _text text;
begin
  if jsonb_typeof(_schema) = 'boolean' then
    return _schema::boolean;
  end if;

  -- ? finds a name in a list of types as well as in a single one.
  if not (_schema -> 'type') ? _kind then
    -- 1.0 is an integer.
    if _kind <> 'number' or not (_schema -> 'type') ? 'integer' or _value::numeric % 1 <> 0 then
      return false;
    end if;
  end if;
  if _schema -> 'const' <> _value then
    return false;
  end if;

  case _kind
    when 'number' then
      if _value::numeric < (_schema -> 'minimum')::numeric
        or _value::numeric > (_schema -> 'maximum')::numeric then
        return false;
      end if;
    when 'string' then
      _text := _value #>> '{}';
      if length(_text) < (_schema -> 'minLength')::numeric
        or length(_text) > (_schema -> 'maxLength')::numeric
        -- In this collation \d and \w are ASCII, as JSON Schema means them.
        or _text !~ (_schema ->> 'pattern') collate "C" then
        return false;
      end if;
    when 'array' then
      if jsonb_array_length(_value) < (_schema -> 'minItems')::numeric
        or jsonb_array_length(_value) > (_schema -> 'maxItems')::numeric then
        return false;
      end if;
      if _schema ? 'items' then
        if exists (
          select
          from jsonb_array_elements(_value) as i(item)
          where not sb_internal._json_matches(_schema -> 'items', i.item)
        ) then
          return false;
        end if;
      end if;
    when 'object' then
      if _schema ?| array['required', 'properties', 'additionalProperties'] then
        if exists (
          select
          from jsonb_array_elements_text(_schema -> 'required') as r(name)
          where not _value ? r.name
        ) or exists (
          select
          from jsonb_each(_schema -> 'properties') as p(name, schema)
          where _value ? p.name and not sb_internal._json_matches(p.schema, _value -> p.name)
        ) or _schema ? 'additionalProperties' and exists (
          select
          from jsonb_each(_value) as m(name, value)
          where not coalesce(_schema -> 'properties' ? m.name, false)
            and not sb_internal._json_matches(_schema -> 'additionalProperties', m.value)
        ) then
          return false;
        end if;
      end if;
    else
      null;
  end case;

  if _schema ?| array['enum', 'anyOf', 'allOf', 'oneOf', 'not'] then
    if _schema ? 'enum' and not exists (
      select from jsonb_array_elements(_schema -> 'enum') as e(value) where e.value = _value
    ) or exists (
      select
      from jsonb_array_elements(_schema -> 'allOf') as s(schema)
      where not sb_internal._json_matches(s.schema, _value)
    ) or _schema ? 'anyOf' and not exists (
      select
      from jsonb_array_elements(_schema -> 'anyOf') as s(schema)
      where sb_internal._json_matches(s.schema, _value)
    ) or _schema ? 'oneOf' and 1 <> (
      select count(*)
      from jsonb_array_elements(_schema -> 'oneOf') as s(schema)
      where sb_internal._json_matches(s.schema, _value)
    ) or _schema ? 'not' and sb_internal._json_matches(_schema -> 'not', _value) then
      return false;
    end if;
  end if;
  return true;
end
$$;
comment on function sb_internal._json_matches(jsonb, jsonb) is
  'Whether a value is valid for a schema that passed _json_schema_check, by the rules of JSON Schema 2020-12; pattern is a regular expression of PostgreSQL in collation C, matched anywhere in the string.';
revoke all on function sb_internal._json_matches(jsonb, jsonb) from public;
