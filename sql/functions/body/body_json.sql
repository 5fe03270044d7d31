create or replace function sb.body_json(message_body bytea)
  returns jsonb
  language sql
  immutable
  parallel safe
  security invoker
begin atomic
  select pg_catalog.convert_from(
    case
      when pg_catalog.substr(body_json.message_body, 1, 3) = '\xefbbbf'::bytea
        then pg_catalog.substr(body_json.message_body, 4)
      else body_json.message_body
    end,
    'UTF8'
  )::jsonb;
end;
comment on function sb.body_json(bytea) is
  'The body as jsonb: it is read as UTF-8, a byte order mark is left out. 22021 when it is not UTF-8, 22P02 when it is not JSON, 22P05 when it is JSON that jsonb cannot hold (\u0000).';
revoke all on function sb.body_json(bytea) from public;
