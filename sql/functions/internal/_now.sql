-- The one clock. clock_timestamp, not now(): an old transaction must see a timer that fell due
-- after it began. No set clause, so that the planner inlines it.
create or replace function sb_internal._now()
  returns timestamptz
  language sql
  volatile
  parallel safe
  security invoker
begin atomic
  select pg_catalog.clock_timestamp();
end;
comment on function sb_internal._now() is
  'The clock of the broker: the database server''s.';
revoke all on function sb_internal._now() from public;
