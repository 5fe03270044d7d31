create or replace function sb_internal._stopped_by(queue_id integer)
  returns text
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    -- One that is off although it is switched on has reached its poison limit; nobody has written that down yet.
    select 'stopped_by=' || case when q.is_poison_disabled or q.is_enabled then 'poison_message_handling' else 'alter_queue' end
      from sb_internal.queue as q
     where q.queue_id = _stopped_by.queue_id);
end
$$;
comment on function sb_internal._stopped_by(integer) is
  'What has switched off a queue that is off, as a detail for S9617.';
revoke all on function sb_internal._stopped_by(integer) from public;
