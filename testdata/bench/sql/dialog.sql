-- A whole dialog of request and reply: three transactions.
begin;
select sb.begin_dialog('Client', 'WorkService')::text as dialog \gset
select sb.send(:dialog::uuid, 'DEFAULT', :body::bytea);
commit;
begin;
select conversation_handle::text as request from sb.receive('Work') \gset
select sb.send(:request::uuid, 'DEFAULT', :body::bytea);
select sb.end_conversation(:request::uuid);
commit;
begin;
select * from sb.receive('Replies');
select sb.end_conversation(:dialog::uuid);
commit;
