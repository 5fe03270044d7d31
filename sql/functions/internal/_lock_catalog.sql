-- Table locks would stop SENDs, and row locks do not protect names that are not there yet.
create or replace function sb_internal._lock_catalog()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(8420, -1);
end
$$;
comment on function sb_internal._lock_catalog() is
  'Makes DDL verbs one after the other, to the end of the transaction. First in the lock order: taken before anything else, and never by a messaging verb. Grants too, since PostgreSQL fails on privileges changed concurrently.';
revoke all on function sb_internal._lock_catalog() from public;
