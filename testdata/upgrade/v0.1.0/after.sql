-- What must come of data.sql, whatever has happened to the database meanwhile: everything is received, once and in
-- order, and the conversations go on. Its last query writes expected.txt.
create table public.got (id bigint generated always as identity, dialog text, is_initiator boolean, body text);
create function public.drain() returns void language plpgsql as $$
declare
  queue text;
  n bigint := 1;
begin
  while n > 0 loop
    n := 0;
    for queue in select q.name from sb.service_queues as q where q.name like '%Queue' and q.is_receive_enabled order by 1 loop
      loop
        insert into public.got (dialog, is_initiator, body)
        select coalesce(d.name, '?'), e.is_initiator,
               case r.message_type_id when 1 then 'Error ' || sb.error_code(r.message_body) when 2 then 'EndDialog' when 5 then 'DialogTimer'
                 else sb.body_text(r.message_body) end
          from sb.receive(queue) as r
          left join sb.conversation_endpoints as e on e.conversation_handle = r.conversation_handle
          left join public.dialog as d on d.handle = e.conversation_id;
        exit when not found;
        n := n + 1;
      end loop;
    end loop;
  end loop;
end $$;
-- Four failures are not five.
select 1 / count(*) from sb.service_queues as q where q.name = 'RightQueue' and q.is_receive_enabled;
select public.drain();
-- The priority has stayed, and the group.
insert into public.got (dialog, body)
select 'priority of ' || d.name, e.priority || ' ' || e.is_initiator
  from public.dialog as d
  join sb.conversation_endpoints as e on e.conversation_id = d.handle
 where d.name = 'urgent'
 order by e.is_initiator;
insert into public.got (dialog, body)
select 'state', concat_ws(' ', sb.get_state(e.conversation_group_id), o.total)
  from sb.conversation_endpoints as e
  join public.order_state as o on o.conversation_group_id = e.conversation_group_id
 where e.conversation_handle in (public.handle_of('first'), public.handle_of('second'));
insert into public.got (dialog, body)
select 'waits in transmission', concat_ws(' ', sb.body_text(t.message_body), t.is_end_of_dialog)
  from sb.transmission_queue as t order by t.to_service_name, t.message_sequence_number;
insert into public.got (dialog, body)
select 'retained in ' || m.queue_name, m.status || ' ' || sb.body_text(m.message_body) from sb.queue_messages as m order by m.queuing_order;
insert into public.got (dialog, body)
select case when e.dialog_timer is null then 'lives until tomorrow' else 'rings tomorrow' end, d.name
  from sb.conversation_endpoints as e
  join public.dialog as d on d.handle = e.conversation_id
 where e.dialog_timer > now() + interval '1 hour'
    or e.lifetime between now() + interval '1 hour' and now() + interval '2 days'
 order by d.name collate "C", e.is_initiator;

-- Now what was parked can go on, and everything else goes on too.
select sb.create_service('Later', 'RightQueue', '{Talk}');
select sb.alter_queue('OffQueue', enabled => true);
select public.say(d.name, d.name || ' goes on') from public.dialog as d where d.name in ('plain', 'half', 'off', 'kept', 'first', 'second', 'urgent', 'lives');
select sb.send(public.far_side(d.name), 'Note', d.name || ' answers') from public.dialog as d where d.name in ('plain', 'half', 'first', 'lives');
select public.begin_talk('new');
select public.say('new', 'new 1');
select public.drain();
insert into public.got (dialog, body)
select 'states', string_agg(concat(d.name, ' ', e.is_initiator, ' ', e.state), ', ' order by d.name collate "C", e.is_initiator)
  from sb.conversation_endpoints as e
  join public.dialog as d on d.handle = e.conversation_id;
select sb.end_conversation(e.conversation_handle, cleanup => true) from sb.conversation_endpoints as e where not e.is_system;
select sb.maintain();
insert into public.got (dialog, body)
select 'left', concat_ws(' ', (select count(*) from sb.conversation_endpoints as e where not e.is_system), (select count(*) from sb.queue_messages),
  (select count(*) from sb.transmission_queue), (select count(*) from public.order_state), (select count(*) from sb.conversation_state));
select concat(g.dialog, case when g.is_initiator then ' (initiator)' when not g.is_initiator then ' (target)' end, ': ',
         string_agg(g.body, ', ' order by g.id))
  from public.got as g
 group by g.dialog, g.is_initiator
 order by g.dialog collate "C", g.is_initiator;
