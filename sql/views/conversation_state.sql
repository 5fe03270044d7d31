create or replace view sb.conversation_state
  with (security_barrier = true)
as
select t.conversation_group_id,
       t.state
  from sb_internal.state as t
  join sb.conversation_group as g on g.conversation_group_id = t.conversation_group_id
  join sb_internal.service as s on s.service_id = g.service_id
 where s.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.conversation_state is
  'The built-in state table, one row for each conversation group that has state, of services whose queue the reader may receive from. Written by sb.set_state.';
