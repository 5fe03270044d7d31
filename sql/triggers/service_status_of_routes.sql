create or replace trigger route_status
  after insert or update or delete on sb_internal.route
  for each row execute function sb_internal._refresh_service_status();
