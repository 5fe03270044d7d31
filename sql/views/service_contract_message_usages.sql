create or replace view sb.service_contract_message_usages
  with (security_barrier = true)
as
select m.service_contract_id,
       m.message_type_id,
       m.is_sent_by_initiator,
       m.is_sent_by_target
  from sb_internal.contract_message as m
 where m.service_contract_id = any ((select sb_internal._visible(current_user, 'contract'))::integer[]);
comment on view sb.service_contract_message_usages is
  'Which side may send which message type, of contracts that the reader owns or may reference; both true is SENT BY ANY.';
