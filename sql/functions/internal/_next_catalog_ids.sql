create or replace function sb_internal._next_catalog_ids()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform setval('sb_internal.message_type_id', greatest(65535, (select max(t.message_type_id) from sb_internal.message_type as t)) + 1, false);
  perform setval('sb_internal.service_contract_id', greatest(65535, (select max(c.service_contract_id) from sb_internal.contract as c)) + 1, false);
  perform setval('sb_internal.queue_id', greatest(65535, (select max(q.queue_id) from sb_internal.queue as q)) + 1, false);
  perform setval('sb_internal.service_id', greatest(65535, (select max(s.service_id) from sb_internal.service as s)) + 1, false);
  perform setval('sb_internal.route_id', greatest(65535, (select max(r.route_id) from sb_internal.route as r)) + 1, false);
  perform setval('sb_internal.priority_id', greatest(65535, (select max(p.priority_id) from sb_internal.conversation_priority as p)) + 1, false);
  perform setval('sb_internal.event_notification_id', greatest(0, (select max(n.event_notification_id) from sb_internal.event_notification as n)) + 1, false);
end
$$;
comment on function sb_internal._next_catalog_ids() is
  'Puts the id sequences of the catalog behind every id in use, after a restore of data alone.';
revoke all on function sb_internal._next_catalog_ids() from public;
