create or replace function sb_internal._is_valid_body(
  message_type_id integer,
  validation text,
  body bytea,
  is_text boolean
)
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return case _is_valid_body.validation
    when 'NONE' then true
    when 'EMPTY' then _is_valid_body.body is null
    when 'WELL_FORMED_JSON' then
      _is_valid_body.body is null or sb_internal._json_is_well_formed(_is_valid_body.body)
    when 'VALID_JSON' then
      _is_valid_body.body is null
      or sb_internal._json_is_well_formed(_is_valid_body.body)
      and coalesce((
        select sb_internal._json_schema_is_valid(t.schema,
                 sb_internal._json_value(_is_valid_body.body))
          from sb_internal.message_type as t
         where t.message_type_id = _is_valid_body.message_type_id
           and t.schema is not null), true)
    else
      _is_valid_body.body is null
      or sb_internal._xml_is_well_formed(_is_valid_body.body, _is_valid_body.is_text)
  end;
exception
  -- A body that is JSON but not jsonb (\u0000, a number out of range) cannot match a schema.
  when data_exception or program_limit_exceeded then
    return false;
end
$$;
comment on function sb_internal._is_valid_body(integer, text, bytea, boolean) is
  'Checks a body against the validation of its message type, except for a user''s validator function, which runs with the rights of whoever sends.';
revoke all on function sb_internal._is_valid_body(integer, text, bytea, boolean) from public;
