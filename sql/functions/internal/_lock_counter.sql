create or replace function sb_internal._lock_counter(conversation_handle uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform 1
     from sb_internal.send_counter as c
    where c.conversation_handle = _lock_counter.conversation_handle
    order by c.conversation_handle desc, c.message_sequence_number desc
    limit 1
      for no key update;
end
$$;
comment on function sb_internal._lock_counter(uuid) is
  'Waits for SENDs on the conversation and keeps further ones out, to the end of the transaction.';
revoke all on function sb_internal._lock_counter(uuid) from public;
