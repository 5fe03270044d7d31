create or replace function sb_internal._json_schema_is_valid(
  schema jsonb,
  body jsonb
)
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _home name;
  _is_valid boolean;
begin
  select n.nspname
  into _home
  from pg_catalog.pg_extension as e
  inner join pg_catalog.pg_namespace as n on n.oid = e.extnamespace
  where e.extname = 'pg_jsonschema';
  if _home is null then
    return sb_internal._json_matches(_json_schema_is_valid.schema, _json_schema_is_valid.body);
  end if;
  -- Dynamic because the extension may be absent. The exact argument types leave no other overload a
  -- chance.
  execute format('select %I.jsonb_matches_schema($1::pg_catalog.json, $2)', _home)
  into _is_valid
  using _json_schema_is_valid.schema, _json_schema_is_valid.body;
  return coalesce(_is_valid, false);
end
$$;
comment on function sb_internal._json_schema_is_valid(jsonb, jsonb) is
  'Whether a body is valid for a schema: asks the extension pg_jsonschema where it is installed, else _json_matches.';
revoke all on function sb_internal._json_schema_is_valid(jsonb, jsonb) from public;
