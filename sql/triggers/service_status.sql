create or replace trigger broker_status
  after insert or update on sb_internal.broker
  for each row execute function sb_internal._refresh_service_status();

create or replace trigger queue_status
  after update on sb_internal.queue
  for each row execute function sb_internal._refresh_service_status();

create or replace trigger service_status
  after insert or update on sb_internal.service
  for each row execute function sb_internal._refresh_service_status();
