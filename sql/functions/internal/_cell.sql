-- Sequences are the only thing in PostgreSQL that outlives a rollback: poison counting and search hints
-- live in them.
create or replace function sb_internal._cell(queue_id integer, cell text)
  returns bigint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return pg_sequence_last_value(('sb_internal.queue_' || _cell.queue_id || '_' || _cell.cell)::regclass);
end
$$;
comment on function sb_internal._cell(integer, text) is
  'Reads one of a queue''s non-transactional cells (sequences, found by name so that a dump restores them); null when never written.';
revoke all on function sb_internal._cell(integer, text) from public;
