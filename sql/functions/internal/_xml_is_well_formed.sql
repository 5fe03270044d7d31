-- The content is parsed inside an element. That makes a fragment a document, so one function serves
-- both whatever xmloption says; and a DOCTYPE, which may stand only before the root element,
-- becomes a syntax error at its first character, so that no entity is ever declared, let alone
-- expanded, while the same characters inside a comment or CDATA section stay harmless. Content
-- cannot leave the element: after its end tag our own end tag would be a second one.
create or replace function sb_internal._xml_is_well_formed(
  body bytea,
  is_text boolean
)
  returns boolean
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- NULL, what cannot be decoded, has to make the whole NULL: not concat.
  return coalesce(
    xml_is_well_formed_document(
      '<x>'
      || sb_internal._xml_decode(_xml_is_well_formed.body, _xml_is_well_formed.is_text)
      || '</x>'
    ),
    false
  );
end
$$;
comment on function sb_internal._xml_is_well_formed(bytea, boolean) is
  'Whether a body is a well-formed XML document or fragment without a DOCTYPE, as SQL Server''s xml type accepts it; is_text as in _xml_decode. What is beyond the limits of libxml (256 levels; 10 MB in one text node may be too much) is not well formed. The parser builds a tree: 100 MB of tiny elements take 10 s and 3.5 GB. Raises nothing, except 0A000 (feature_not_supported) on a server built without libxml.';
revoke all on function sb_internal._xml_is_well_formed(bytea, boolean) from public;
