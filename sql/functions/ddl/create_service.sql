create or replace function sb.create_service(
  name text,
  queue_name text,
  contracts text[] default '{}',
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_service(
    current_user, create_service.name, create_service.queue_name, create_service.contracts,
    create_service.if_not_exists
  );
end;
comment on function sb.create_service(text, text, text[], boolean) is
  'CREATE SERVICE on a queue. contracts: those it accepts as target, DEFAULT only when listed; without any it can only initiate (R-066 to R-069). Delivers at once what waits for it. Admins only. Errors: 42501, 42602 name, 42710 exists, S0208 no such queue, 42704 no such contract, S8404 contract listed twice, S9663. Locks: the catalog; conversations with skip locked.';
revoke all on function sb.create_service(text, text, text[], boolean) from public;
