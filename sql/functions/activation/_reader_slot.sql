-- A reader's slot is an advisory lock in the single-bigint key space: 16 bits say that the lock is ours
-- ('SB'), then queue and slot. Class 8420 of the two-integer space is the waiting flag.
create or replace function sb_internal._reader_slot(queue_id integer, slot integer)
  returns bigint
  language sql
  immutable
  parallel safe
  security invoker
begin atomic
  select (21314::bigint operator(pg_catalog.<<) 48)
    operator(pg_catalog.|) (_reader_slot.queue_id::bigint operator(pg_catalog.<<) 15)
    operator(pg_catalog.|) _reader_slot.slot::bigint;
end;
comment on function sb_internal._reader_slot(integer, integer) is
  'Advisory lock key of one reader slot of a queue.';
revoke all on function sb_internal._reader_slot(integer, integer) from public;
