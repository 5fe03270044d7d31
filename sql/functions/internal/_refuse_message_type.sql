create or replace function sb_internal._refuse_message_type(message_type text, service_contract_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select 1
      from sb_internal.message_type as t
     where _refuse_message_type.message_type in (t.name, t.sqlserver_name))
  then
    perform sb_internal._raise('S8428', array[_refuse_message_type.message_type]);
  end if;
  perform sb_internal._raise('S8431', array[_refuse_message_type.message_type, (
    select c.name
      from sb_internal.contract as c
     where c.service_contract_id = _refuse_message_type.service_contract_id)]);
end
$$;
comment on function sb_internal._refuse_message_type(text, integer) is
  'Says why a message type is not in the contract: unknown (S8428) or not part of it (S8431).';
revoke all on function sb_internal._refuse_message_type(text, integer) from public;
