create or replace function sb_internal._advance_hint(
  queue_id integer,
  level smallint,
  found_at bigint
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  cell constant regclass :=
    ('sb_internal.queue_' || _advance_hint.queue_id || '_hint_' || _advance_hint.level)::regclass;
  hint bigint := coalesce(pg_sequence_last_value(cell), 0);
begin
  -- Forward in strides (a write costs WAL and a lock), back as far as a full search saw need.
  if _advance_hint.found_at - 128 > hint or _advance_hint.found_at < hint then
    perform setval(cell, _advance_hint.found_at);
  end if;
end
$$;
comment on function sb_internal._advance_hint(integer, smallint, bigint) is
  'Remembers where the last group that could be locked was found.';
revoke all on function sb_internal._advance_hint(integer, smallint, bigint) from public;
