-- Decodes as sb_internal._xml_decode does, which callers may not use, but lets the errors out. And
-- it is kinder to a text that declares UTF-16, as programs write that build it from UTF-16 strings:
-- a body whose declaration can be read in single bytes is not UTF-16, so it is read as UTF-8.
create or replace function sb.body_xml(message_body bytea)
  returns xml
  language plpgsql
  immutable
  parallel safe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _rest bytea := case
    when substr(body_xml.message_body, 1, 3) = e'\\xefbbbf'::bytea
      then substr(body_xml.message_body, 4)
    else body_xml.message_body
  end;
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
      _encoding := upper(coalesce(
        substring(_declaration from $re$encoding[ \t\r\n]*=[ \t\r\n]*["']([^"']+)$re$), _encoding
      ));
      if _encoding in ('US-ASCII', 'UTF-16') then
        _encoding := 'UTF8';
      end if;
    end if;
  end if;
  return xmlparse(content convert_from(_rest, _encoding));
end
$$;
comment on function sb.body_xml(bytea) is
  'The body as xml, a document or a fragment, without its XML declaration: it is read as UTF-8 or in the encoding that it declares (a body sent as text that declares another encoding than its own: sb.body_text). 2200N when it is not well formed, 22021 when it is not of its encoding, 22023 when PostgreSQL does not know that. A DOCTYPE is accepted as type xml does: nothing external is read, and libxml stops entities that multiply.';
revoke all on function sb.body_xml(bytea) from public;
