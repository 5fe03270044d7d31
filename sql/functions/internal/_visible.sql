create or replace function sb_internal._visible(caller name, kind text)
  returns integer[]
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  case _visible.kind
    when 'queue' then
      return array(
        select q.queue_id
          from sb_internal.queue as q
         where sb_internal._may(_visible.caller, q.owner, q.receivers));
    when 'service' then
      return array(
        select s.service_id
          from sb_internal.service as s
          join sb_internal.queue as q on q.queue_id = s.queue_id
         where sb_internal._may(_visible.caller, s.owner, s.senders || q.owner || q.receivers));
    when 'contract' then
      return array(
        select c.service_contract_id
          from sb_internal.contract as c
         where sb_internal._may(_visible.caller, c.owner, c.referencers));
    when 'message type' then
      return array(
        select t.message_type_id
          from sb_internal.message_type as t
         where t.message_type_id < 65536
            or sb_internal._may(_visible.caller, t.owner, '{}')
         union
        select m.message_type_id
          from sb_internal.contract_message as m
         where m.service_contract_id = any (sb_internal._visible(_visible.caller, 'contract')));
    when 'route' then
      return array(
        select r.route_id
          from sb_internal.route as r
         where sb_internal._may(_visible.caller, r.owner, '{}'));
    when 'broker priority' then
      return array(
        select p.priority_id
          from sb_internal.conversation_priority as p
         where sb_internal._is_admin(_visible.caller));
  end case;
end
$$;
comment on function sb_internal._visible(name, text) is
  'Ids of the objects that a role sees in the views: what it owns or has a right on; services also through their queue, message types through a contract; broker priorities, which nobody owns, only as an admin. One call a query, so that rights are not checked once a row.';
revoke all on function sb_internal._visible(name, text) from public;
