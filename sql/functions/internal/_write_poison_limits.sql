create or replace function sb_internal._write_poison_limits()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._poison_disable(q.queue_id)
     from sb_internal.queue as q
    where q.is_enabled
      and not sb_internal._queue_is_on(q.queue_id);
end
$$;
comment on function sb_internal._write_poison_limits() is
  'Writes down every queue whose poison limit is reached as off.';
revoke all on function sb_internal._write_poison_limits() from public;
