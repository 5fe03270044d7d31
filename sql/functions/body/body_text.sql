create or replace function sb.body_text(message_body bytea)
  returns text
  language sql
  immutable
  parallel safe
  security invoker
begin atomic
  select pg_catalog.convert_from(
    case
      when pg_catalog.substr(body_text.message_body, 1, 3) = '\xefbbbf'::bytea
        then pg_catalog.substr(body_text.message_body, 4)
      else body_text.message_body
    end,
    'UTF8'
  );
end;
comment on function sb.body_text(bytea) is
  'The body as text: it is read as UTF-8, a byte order mark is left out. 22021 when it is not UTF-8.';
revoke all on function sb.body_text(bytea) from public;
