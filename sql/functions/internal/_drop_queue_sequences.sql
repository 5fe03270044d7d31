-- A receiver holds the cells it wrote until it commits, and may want another one that we hold already.
-- So we wait for any of them only briefly, far below deadlock_timeout, and give all back before the
-- next try.
create or replace function sb_internal._drop_queue_sequences(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '50ms'
as $$
declare
  sequence name;
begin
  loop
    begin
      for sequence in
        select c.relname
          from pg_class as c
         where c.relnamespace = 'sb_internal'::regnamespace
           and c.relkind = 'S'
           and starts_with(c.relname, 'queue_' || _drop_queue_sequences.queue_id || '_')
         order by c.oid
      loop
        execute format('drop sequence sb_internal.%I', sequence);
      end loop;
      return;
    exception
      when lock_not_available then
        perform pg_sleep(0.02);
    end;
  end loop;
end
$$;
comment on function sb_internal._drop_queue_sequences(integer) is
  'Drops what _queue_sequences created. Waits for receivers that used the queue in a transaction still open, holding none of their cells meanwhile.';
revoke all on function sb_internal._drop_queue_sequences(integer) from public;
