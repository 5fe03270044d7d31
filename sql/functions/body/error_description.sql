-- Parsed inside an element of our own, so that a DOCTYPE, and with it every entity, is a syntax
-- error.
create or replace function sb.error_description(message_body bytea)
  returns text
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _rest bytea := case
    when substr(error_description.message_body, 1, 3) = e'\\xefbbbf'::bytea
      then substr(error_description.message_body, 4)
    else error_description.message_body
  end;
begin
  if substr(_rest, 1, 5) = '<?xml'::bytea then
    _rest := substr(_rest, position('?>'::bytea in _rest) + 2);
  end if;
  return (
    select e.description
    from xmltable(
      '/x/*[1][local-name() = "Error"]'
      passing xmlparse(document concat('<x>', convert_from(_rest, 'UTF8'), '</x>'))
      columns description text path '*[local-name() = "Description" or local-name() = "Message"][1]'
    ) as e
  );
exception
  when character_not_in_repertoire or untranslatable_character or invalid_xml_document then
    return null;
end
$$;
comment on function sb.error_description(bytea) is
  'The description in the body of an Error message, from its Description or Message element, whatever their namespace. NULL when the body is not that of an Error message.';
revoke all on function sb.error_description(bytea) from public;
