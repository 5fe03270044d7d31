create or replace function sb_internal._announce(event text, kind text, name text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_notify('sb_events',
    json_build_object('event', _announce.event, _announce.kind, _announce.name)::text);
end
$$;
comment on function sb_internal._announce(text, text, text) is
  'Tells operators and activators, on channel sb_events, what changed: {"event": …, "<kind>": <name>}. A hint, like every notification.';
revoke all on function sb_internal._announce(text, text, text) from public;
