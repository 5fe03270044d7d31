create or replace function sb.alter_service(
  name text,
  queue_name text default null,
  add_contracts text[] default '{}',
  drop_contracts text[] default '{}'
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_service(
    current_user, alter_service.name, alter_service.queue_name, alter_service.add_contracts,
    alter_service.drop_contracts
  );
end;
comment on function sb.alter_service(text, text, text[], text[]) is
  'ALTER SERVICE. queue_name moves the service with all its messages and timers; refused while either queue is off. drop_contracts stops new conversations only (R-072, R-073). For the owner and admins; the new queue must be the caller''s too, and a contract one that he may reference. Errors: 42501, S8423, S0208, 42704 no such contract, 42710 contract listed already, S8404, S8493 nothing to change (R-071), S9617 queue off, S9663. Locks: the catalog; a move of messages waits for every transaction that has touched messages and holds off new ones until it commits.';
revoke all on function sb.alter_service(text, text, text[], text[]) from public;
