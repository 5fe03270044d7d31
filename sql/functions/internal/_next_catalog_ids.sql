create or replace function sb_internal._next_catalog_ids()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform setval('sb_internal.message_type_id', 1 + greatest(65535, (
    select max(t.message_type_id) from sb_internal.message_type as t)), false);
  perform setval('sb_internal.service_contract_id', 1 + greatest(65535, (
    select max(c.service_contract_id) from sb_internal.contract as c)), false);
  perform setval('sb_internal.queue_id', 1 + greatest(65535, (
    select max(q.queue_id) from sb_internal.queue as q)), false);
  perform setval('sb_internal.service_id', 1 + greatest(65535, (
    select max(s.service_id) from sb_internal.service as s)), false);
  perform setval('sb_internal.route_id', 1 + greatest(65535, (
    select max(r.route_id) from sb_internal.route as r)), false);
  perform setval('sb_internal.priority_id', 1 + greatest(65535, (
    select max(p.priority_id) from sb_internal.conversation_priority as p)), false);
  perform setval('sb_internal.event_notification_id', 1 + greatest(0, (
    select max(n.event_notification_id) from sb_internal.event_notification as n)), false);
end
$$;
comment on function sb_internal._next_catalog_ids() is
  'Puts the id sequences of the catalog behind every id in use, after a restore of data alone.';
revoke all on function sb_internal._next_catalog_ids() from public;
