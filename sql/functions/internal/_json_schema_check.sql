-- Each keyword of each subschema is one row; the walk goes down one level past the limit to see
-- that there is more.
create or replace function sb_internal._json_schema_check(schema jsonb)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  -- _json_matches recurses once a level.
  _max_depth constant integer := 64;
  _types constant jsonb :=
    '["null", "boolean", "object", "array", "number", "integer", "string"]'::jsonb;
  _at record;
  _kind text;
  _wrong text;
begin
  for _at in
    with recursive node(path, depth, schema) as (
      select
        '#',
        1,
        _json_schema_check.schema
      union all
      select
        n.path || '/' || c.step,
        n.depth + 1,
        c.schema
      from node as n
      cross join lateral (
        select k.keyword as step, n.schema -> k.keyword as schema
        from unnest(array['additionalProperties', 'items', 'not']) as k(keyword)
        where n.schema ? k.keyword
        union all
        select k.keyword || '/' || (e.position - 1), e.value
        from unnest(array['anyOf', 'allOf', 'oneOf']) as k(keyword)
        cross join lateral jsonb_array_elements(
          case jsonb_typeof(n.schema -> k.keyword) when 'array' then n.schema -> k.keyword end
        ) with ordinality as e(value, position)
        union all
        select 'properties/' || replace(replace(p.key, '~', '~0'), '/', '~1'), p.value
        from jsonb_each(
          case jsonb_typeof(n.schema -> 'properties')
            when 'object' then n.schema -> 'properties'
          end
        ) as p(key, value)
      ) as c
      where jsonb_typeof(n.schema) = 'object' and n.depth <= _max_depth
    )
    select
      n.path,
      n.depth,
      jsonb_typeof(n.schema) as schema_kind,
      k.keyword,
      k.value
    from node as n
    left join lateral jsonb_each(
      case jsonb_typeof(n.schema) when 'object' then n.schema end
    ) as k(keyword, value) on true
  loop
    _wrong := null;
    _kind := jsonb_typeof(_at.value);
    if _at.depth > _max_depth then
      perform sb_internal._raise('22023', array[format(
        'schema is nested deeper than %s levels', _max_depth
      )]);
    elsif _at.schema_kind is null or _at.schema_kind not in ('object', 'boolean') then
      perform sb_internal._raise('22023', array[format(
        'schema at %s must be an object or a boolean', _at.path
      )]);
    elsif _at.keyword is null then
      continue;
    end if;

    case _at.keyword
      when 'additionalProperties', 'items', 'not', 'enum', 'const' then
        -- The first three hold subschemas, which are rows of their own; const takes any value.
        if _at.keyword = 'enum' and _kind <> 'array' then
          _wrong := 'an array';
        end if;
      when 'type' then
        -- <@ finds a single name in an array too.
        if _kind not in ('string', 'array') or _at.value = '[]' or not _at.value <@ _types then
          _wrong := 'a type name or a list of them';
        end if;
      when 'required' then
        if _kind <> 'array'
          or jsonb_path_exists(_at.value, 'strict $[*] ? (@.type() != "string")') then
          _wrong := 'an array of strings';
        end if;
      when 'properties' then
        if _kind <> 'object' then
          _wrong := 'an object';
        end if;
      when 'anyOf', 'allOf', 'oneOf' then
        if _kind <> 'array' or _at.value = '[]' then
          _wrong := 'a list of schemas';
        end if;
      when 'minimum', 'maximum' then
        if _kind <> 'number' then
          _wrong := 'a number';
        end if;
      when 'minLength', 'maxLength', 'minItems', 'maxItems' then
        _wrong := 'a whole number, not negative';
        if _kind = 'number' then
          if _at.value::numeric >= 0 and _at.value::numeric % 1 = 0 then
            _wrong := null;
          end if;
        end if;
      when 'pattern' then
        begin
          -- In JSON Schema \b is a word boundary, in PostgreSQL a backspace: refused, not silently
          -- different.
          _wrong := e'a regular expression without \\b and \\B';
          if _kind = 'string' then
            if (_at.value #>> '{}') !~ $re$^(?:[^\\]|\\[^bB])*\\[bB]$re$
              and ('' ~ (_at.value #>> '{}') collate "C") is not null then
              _wrong := null;
            end if;
          end if;
        exception
          when invalid_regular_expression then
            _wrong := 'a regular expression of PostgreSQL';
        end;
      else
        perform sb_internal._raise('22023', array[format(
          'schema keyword %s/%s is not supported', _at.path, _at.keyword
        )]);
    end case;
    if _wrong is not null then
      perform sb_internal._raise('22023', array[format(
        'schema keyword %s/%s must be %s', _at.path, _at.keyword, _wrong
      )]);
    end if;
  end loop;
end
$$;
comment on function sb_internal._json_schema_check(jsonb) is
  'Refuses (22023, naming the place) a JSON schema that _json_matches would not apply in full: a keyword outside the subset, be it an annotation such as title, a keyword of the wrong type, a pattern that is no regular expression here, more than 64 levels.';
revoke all on function sb_internal._json_schema_check(jsonb) from public;
