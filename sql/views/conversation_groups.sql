create or replace view sb.conversation_groups
  with (security_barrier = true)
as
select g.conversation_group_id,
       g.service_id,
       g.service_id < 65536 as is_system
  from sb.conversation_group as g
  join sb_internal.service as s on s.service_id = g.service_id
 where s.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.conversation_groups is
  'Conversation groups of services whose queue the reader may receive from.';
