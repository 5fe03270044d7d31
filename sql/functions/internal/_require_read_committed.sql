create or replace function sb_internal._require_read_committed(what text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- Waiting for those who are at work is no use to whoever cannot see what they have done.
  if current_setting('transaction_isolation') <> 'read committed' then
    perform sb_internal._raise('25001', array[_require_read_committed.what, current_setting('transaction_isolation')]);
  end if;
end
$$;
comment on function sb_internal._require_read_committed(text) is
  'Error 25001 in a transaction above read committed, for verbs that have to see all conversations there are.';
revoke all on function sb_internal._require_read_committed(text) from public;
