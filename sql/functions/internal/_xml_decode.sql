-- The byte order mark and the XML declaration are cut off: what they say is spent once the bytes
-- are characters, and only without a declaration can the rest stand inside an element
-- (_xml_is_well_formed). A declaration is ASCII in every encoding that PostgreSQL converts; the
-- escape format shows it without an error whatever bytes follow. One that is no declaration, or
-- longer than 256 bytes, stays in place, where the XML parser refuses it.
create or replace function sb_internal._xml_decode(
  body bytea,
  is_text boolean default false
)
  returns text
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _has_mark boolean := substr(_xml_decode.body, 1, 3) = e'\\xefbbbf'::bytea;
  _rest bytea := case when _has_mark then substr(_xml_decode.body, 4) else _xml_decode.body end;
  _encoding text := 'UTF8';
  _length integer;
  _declaration text;
begin
  if substr(_rest, 1, 5) = '<?xml'::bytea then
    _length := position('?>'::bytea in substr(_rest, 1, 256)) + 1;
    _declaration := encode(substr(_rest, 1, _length), 'escape');
    -- A match without groups is several times as fast as one with.
    if _declaration ~ $re$(?x)^<\?xml
        [ \t\r\n]+ version [ \t\r\n]*=[ \t\r\n]* (?:"1\.[0-9]+"|'1\.[0-9]+')
        (?:[ \t\r\n]+ encoding [ \t\r\n]*=[ \t\r\n]*
          (?:"[A-Za-z][A-Za-z0-9._-]*"|'[A-Za-z][A-Za-z0-9._-]*'))?
        (?:[ \t\r\n]+ standalone [ \t\r\n]*=[ \t\r\n]* (?:"(?:yes|no)"|'(?:yes|no)'))?
        [ \t\r\n]*\?>\Z$re$ then
      _rest := substr(_rest, _length + 1);
      if not _xml_decode.is_text then
        _encoding := upper(coalesce(
          substring(_declaration from $re$encoding[ \t\r\n]*=[ \t\r\n]*["']([^"']+)$re$), _encoding
        ));
      end if;
    end if;
  end if;
  if _encoding = 'US-ASCII' then
    _encoding := 'UTF8';
  elsif _has_mark and _encoding not in ('UTF8', 'UTF-8') then
    -- Parsers differ on which of the two to believe: what is valid for one would be garbage for
    -- another.
    return null;
  end if;
  return convert_from(_rest, _encoding);
exception
  -- Not of that encoding, no such character here, no such encoding, no conversion from it.
  when character_not_in_repertoire or untranslatable_character
    or invalid_parameter_value or undefined_function then
    return null;
end
$$;
comment on function sb_internal._xml_decode(bytea, boolean) is
  'The characters of an XML body without byte order mark and XML declaration: UTF-8, or the declared encoding unless is_text says that the bytes are a text in UTF-8 whatever they declare. NULL when the bytes are not of that encoding, hold a NUL, or PostgreSQL cannot convert it (UTF-16).';
revoke all on function sb_internal._xml_decode(bytea, boolean) from public;
