create or replace view sb.options
  with (security_barrier = true)
as
select o.name,
       o.value,
       o.default_value,
       o.description
  from sb_internal.broker as b
 cross join lateral (
   values
     ('system_names', b.system_names, 'documented',
       'documented: system names begin with https:// as in the documentation; sqlserver: with http:// as in the product'),
     ('honor_broker_priority', case when b.is_honor_broker_priority_on then 'on' else 'off' end, 'off',
       'on: what waits in the transmission queue is delivered by priority'),
     ('validate_on_send', case when b.is_validate_on_send then 'on' else 'off' end, 'off',
       'on: SEND of an invalid body fails; off: both sides of the conversation get an Error'),
     ('poison_message_threshold', b.poison_message_threshold::text, '5',
       'how many receiving transactions that roll back in a row switch a queue off')
 ) as o (name, value, default_value, description);
comment on view sb.options is
  'The options of the broker; sb.set_option sets them.';
