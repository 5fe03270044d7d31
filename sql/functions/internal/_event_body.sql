create or replace function sb_internal._event_body(event text, queue_name text)
  returns bytea
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  body text := '<EVENT_INSTANCE>';
  element record;
begin
  for element in
    select x.name, x.value
      from (values
        (1, 'EventType', _event_body.event),
        (2, 'PostTime', to_char(sb_internal._now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS')),
        (3, 'SPID', pg_backend_pid()::text),
        (4, 'ServerName', coalesce(nullif(current_setting('cluster_name'), ''), host(inet_server_addr()), 'localhost')),
        (5, 'LoginName', session_user::text),
        (6, 'UserName', session_user::text),
        (7, 'DatabaseName', current_database()::text),
        (8, 'SchemaName', 'sb'),
        (9, 'ObjectName', _event_body.queue_name),
        (10, 'ObjectType', 'QUEUE')
      ) as x (position, name, value)
     order by x.position
  loop
    -- Control characters, which names may hold, have no form in XML.
    body := body || format('<%1$s>%2$s</%1$s>', element.name,
      replace(replace(replace(
        regexp_replace(element.value, $re$[\u0001-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]$re$, '?', 'g'),
        '&', '&amp;'), '<', '&lt;'), '>', '&gt;'));
  end loop;
  return convert_to(body || '</EVENT_INSTANCE>', 'UTF8');
end
$$;
comment on function sb_internal._event_body(text, text) is
  'The EVENT_INSTANCE document of R-114, for both events; PostTime is UTC, both names are the session''s login.';
revoke all on function sb_internal._event_body(text, text) from public;
