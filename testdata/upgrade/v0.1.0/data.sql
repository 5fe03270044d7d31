-- What a database of version 0.1.0 may hold when it is upgraded, dumped or copied: conversations in every state, with
-- messages on their way. Written for that version and never changed; after.sql goes on from here.
select sb.create_message_type('Note');
select sb.create_message_type('Json', 'VALID_JSON', schema => '{"type": "object"}');
select sb.create_contract('Talk', sent_by_any => '{Note,Json}');
select sb.create_queue('LeftQueue'), sb.create_queue('RightQueue'), sb.create_queue('KeepQueue', retention => true),
       sb.create_queue('OffQueue', enabled => false), sb.create_queue('EventQueue');
select sb.create_service('Left', 'LeftQueue', '{Talk}'), sb.create_service('Right', 'RightQueue', '{Talk}'),
       sb.create_service('Keep', 'KeepQueue', '{Talk}'), sb.create_service('Off', 'OffQueue', '{Talk}'),
       sb.create_service('Events', 'EventQueue', '{https://schemas.microsoft.com/SQL/Notifications/PostEventNotification}');
select sb.create_event_notification('Stopped', 'RightQueue', 'BROKER_QUEUE_DISABLED', 'Events');
select sb.create_route('Elsewhere', 'remote://elsewhere', 'Far');
select sb.create_service('Urgent', 'RightQueue', '{Talk}');
select sb.create_broker_priority('Urgent', remote_service_name => 'Urgent', priority_level => 9::smallint);
select sb.create_broker_priority('Urgent there', local_service_name => 'Urgent', priority_level => 9::smallint);
select sb.create_state_table('public.order_state', 'total integer not null');
create table public.dialog (name text primary key, handle uuid not null);

-- begin_talk begins a dialog that later statements find by its name; say sends.
create function public.begin_talk(name text, to_service text default 'Right', lifetime interval default null)
  returns uuid language sql as $$
  insert into public.dialog select begin_talk.name, sb.begin_dialog('Left', begin_talk.to_service, 'Talk', lifetime => begin_talk.lifetime)
  returning handle
$$;
create function public.handle_of(name text) returns uuid language sql stable as $$
  select d.handle from public.dialog as d where d.name = handle_of.name
$$;
create function public.say(name text, variadic bodies text[]) returns void language plpgsql as $$
begin
  for i in 1..cardinality(bodies) loop
    perform sb.send(public.handle_of(say.name), 'Note', bodies[i]);
  end loop;
end $$;
-- far_side is the handle of the other side.
create function public.far_side(name text) returns uuid language sql stable as $$
  select e.conversation_handle
    from sb.conversation_endpoints as e
   where e.conversation_id = public.handle_of(far_side.name)
     and not e.is_initiator
$$;

-- Waiting in the queue of the other side, and an answer on its way back.
select public.begin_talk('plain');
select public.say('plain', 'plain 1', 'plain 2', 'plain 3');
select sb.send(public.far_side('plain'), 'Json', '{"answer": 1}'::jsonb);
-- Long, and received to the middle, past the receive cursor.
select public.begin_talk('half');
select sb.send_batch(public.handle_of('half'), 'Note', array(select convert_to('half ' || i, 'UTF8') from generate_series(1, 100) as i));
select count(*) from sb.receive('RightQueue', 40, for_conversation => public.far_side('half'));
select count(*) from sb.receive('RightQueue', 35, for_conversation => public.far_side('half'));
-- To a service that is not there yet, ended already; to a queue that is off; to a far server.
select public.begin_talk('parked', 'Later');
select public.say('parked', 'parked 1', 'parked 2');
select sb.end_conversation(public.handle_of('parked'));
select public.begin_talk('off', 'Off');
select public.say('off', 'off 1', 'off 2');
select public.begin_talk('far', 'Far');
select public.say('far', 'far 1');
-- Timers and lifetimes, due and not.
select public.begin_talk('rings');
select sb.begin_conversation_timer(public.handle_of('rings'), '1 ms');
select public.begin_talk('sleeps');
select public.say('sleeps', 'sleeps 1');
select sb.begin_conversation_timer(public.far_side('sleeps'), '1 day');
select public.begin_talk('expired', lifetime => '50 ms');
select public.say('expired', 'expired 1');
select pg_sleep(0.06);
select public.begin_talk('lives', lifetime => '1 day');
select public.say('lives', 'lives 1');
-- Ended from one side, and failed.
select public.begin_talk('ended');
select public.say('ended', 'ended 1');
select sb.end_conversation(public.handle_of('ended'));
select public.begin_talk('failed');
select public.say('failed', 'failed 1');
select sb.end_conversation(public.handle_of('failed'), 42, 'it failed');
select public.begin_talk('half ended');
select public.say('half ended', 'half ended 1');
select count(*) from sb.receive('RightQueue', for_conversation => public.far_side('half ended'));
select sb.end_conversation(public.far_side('half ended'));
-- Retained copies of what was received.
select public.begin_talk('kept', 'Keep');
select public.say('kept', 'kept 1', 'kept 2');
select count(*) from sb.receive('KeepQueue', 1);
-- Two conversations in one group, with state.
select public.begin_talk('first'), public.begin_talk('second');
select sb.move_conversation(public.handle_of('second'), e.conversation_group_id)
  from sb.conversation_endpoints as e
 where e.conversation_handle = public.handle_of('first');
select public.say('first', 'first 1'), public.say('second', 'second 1');
select sb.send(public.far_side('first'), 'Note', 'first back'), sb.send(public.far_side('second'), 'Note', 'second back');
select sb.set_state(e.conversation_group_id, '{"seen": 2}')
  from sb.conversation_endpoints as e
 where e.conversation_handle = public.handle_of('first');
insert into public.order_state (conversation_group_id, total)
select e.conversation_group_id, 7 from sb.conversation_endpoints as e where e.conversation_handle = public.handle_of('first');
select public.begin_talk('urgent', 'Urgent');
select public.say('urgent', 'urgent 1');

-- What rolled-back transactions leave: dead rows, gaps in sequences, and four failures on the brink of the poison limit.
begin;
select public.begin_talk('never');
select public.say('never', 'never 1'), public.say('plain', 'never 2');
rollback;
begin; select count(*) from sb.receive('RightQueue'); rollback;
begin; select count(*) from sb.receive('RightQueue', 1); rollback;
begin; select count(*) from sb.receive('RightQueue', 1); rollback;
begin; select count(*) from sb.receive('RightQueue'); rollback;
