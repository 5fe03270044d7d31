create or replace function sb_internal._share_name(kind text, name text)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- Rather than the row: key share locks of many transactions on one row make a multixact of each of them,
  -- which cost a fifth of begin_dialog with its first send.
  return current_setting('transaction_isolation') <> 'read committed'
    or pg_advisory_xact_lock_shared(case _share_name.kind when 'service' then 8423 else 8424 end,
      hashtext(_share_name.name)) is null;
end
$$;
comment on function sb_internal._share_name(text, text) is
  'Keeps a service or contract (kind) from being dropped to the end of the transaction, see _lock_conversations; look it up afterwards. Returns true where that is not enough, having locked nothing: above read committed the look may be older than the lock, and the caller locks the row for key share, which fails (40001) when it is gone.';
revoke all on function sb_internal._share_name(text, text) from public;
