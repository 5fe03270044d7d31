-- The set-up of most scenarios: services Client and Server, a queue each, and contract Talk, in which both may say
-- everything. Ask and Answer are well-formed XML, Note is anything.
select sb.create_message_type('Ask', 'WELL_FORMED_XML');
select sb.create_message_type('Answer', 'WELL_FORMED_XML');
select sb.create_message_type('Note');
select sb.create_contract('Talk', sent_by_any => '{Ask, Answer, Note}');
select sb.create_queue('ClientQueue');
select sb.create_queue('ServerQueue');
select sb.create_service('Client', 'ClientQueue', '{Talk}');
select sb.create_service('Server', 'ServerQueue', '{Talk}');

-- A message in a few words.
create function what(message_type_name text, message_body bytea) returns text language sql
return case
  when message_type_name like '%/ServiceBroker/Error'
    then concat('Error ', sb.error_code(message_body), ' ', sb.error_description(message_body))
  when message_type_name like '%/ServiceBroker/%' then split_part(message_type_name, '/', 6)
  else concat_ws(' ', message_type_name, sb.body_text(message_body))
end;

-- What is left of conversations, for the end of a scenario.
create view left_over as
  select 'endpoint' as what, e.state as detail, count(*) as rows from sb.conversation_endpoints as e group by e.state
  union all
  select 'message', m.queue_name, count(*) from sb.queue_messages as m group by m.queue_name
  union all
  select 'transmission', t.to_service_name, count(*) from sb.transmission_queue as t group by t.to_service_name
  union all
  select 'group', null, count(*) from sb.conversation_groups as g having count(*) > 0;
