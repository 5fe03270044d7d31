create or replace trigger service_contract_status
  after insert or delete on sb_internal.service_contract
  for each row execute function sb_internal._refresh_service_status();
