-- Parsed inside an element of our own, so that a DOCTYPE, and with it every entity, is a syntax
-- error.
create or replace function sb.error_code(message_body bytea)
  returns integer
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _rest bytea := case
    when substr(error_code.message_body, 1, 3) = e'\\xefbbbf'::bytea
      then substr(error_code.message_body, 4)
    else error_code.message_body
  end;
begin
  if substr(_rest, 1, 5) = '<?xml'::bytea then
    _rest := substr(_rest, position('?>'::bytea in _rest) + 2);
  end if;
  return (
    select e.code
    from xmltable(
      '/x/*[1][local-name() = "Error"]'
      passing xmlparse(document concat('<x>', convert_from(_rest, 'UTF8'), '</x>'))
      columns code integer path '*[local-name() = "Code"][1]'
    ) as e
  );
exception
  when character_not_in_repertoire or untranslatable_character
    or invalid_xml_document or invalid_text_representation or numeric_value_out_of_range then
    return null;
end
$$;
comment on function sb.error_code(bytea) is
  'The error code in the body of an Error message, whatever its namespace; negative when the broker itself raised it. NULL when the body is not that of an Error message.';
revoke all on function sb.error_code(bytea) from public;
