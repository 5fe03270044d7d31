create or replace function sb_internal._refuse_message_type(
  message_type text,
  service_contract_id integer,
  is_initiator boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_name(_refuse_message_type.message_type, 'message type', 128);
  if not exists (
    select 1
      from sb_internal.message_type as t
     where _refuse_message_type.message_type in (t.name, t.sqlserver_name))
  then
    perform sb_internal._raise('S8428', array[_refuse_message_type.message_type]);
  elsif not exists (
    select 1
      from sb_internal.contract_message as m
     where m.service_contract_id = _refuse_message_type.service_contract_id
       and m.message_type_name = _refuse_message_type.message_type)
  then
    perform sb_internal._raise('S8431', array[_refuse_message_type.message_type,
      coalesce((
        select c.name
          from sb_internal.contract as c
         where c.service_contract_id = _refuse_message_type.service_contract_id),
        _refuse_message_type.service_contract_id::text)]);
  elsif _refuse_message_type.is_initiator then
    perform sb_internal._raise('S8432', array[_refuse_message_type.message_type]);
  else
    perform sb_internal._raise('S8434', array[_refuse_message_type.message_type]);
  end if;
end
$$;
comment on function sb_internal._refuse_message_type(text, integer, boolean) is
  'Says why this side may not send the message type: unknown (S8428), not in the contract (S8431), the targets (S8432) or the initiators (S8434).';
revoke all on function sb_internal._refuse_message_type(text, integer, boolean) from public;
