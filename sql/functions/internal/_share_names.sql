create or replace function sb_internal._share_names(service text, contract text, far_service text default null)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- Rather than the rows: key share locks of many transactions on one row make a multixact of each of them,
  -- which cost a fifth of begin_dialog with its first send.
  return current_setting('transaction_isolation') <> 'read committed'
    or pg_advisory_xact_lock_shared(8423, hashtext(_share_names.service)) is null
    or pg_advisory_xact_lock_shared(8424, hashtext(_share_names.contract)) is null
      and _share_names.contract is not null
    or pg_advisory_xact_lock_shared(8423, hashtext(_share_names.far_service)) is null
      and _share_names.far_service is not null;
end
$$;
comment on function sb_internal._share_names(text, text, text) is
  'Keeps a service, a contract (null: none) and another service (null: none) from being dropped to the end of the transaction, see _lock_conversations; look them up afterwards. Returns true where that is not enough, having locked nothing: above read committed the look may be older than the lock, and the caller locks the rows for share, which fails (40001) when they are gone.';
revoke all on function sb_internal._share_names(text, text, text) from public;
