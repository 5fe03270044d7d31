create or replace function sb_internal._poison_limit_reached(queue_id integer)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- The alarm is raised by the receive after which one more rollback may reach the limit, so that the
  -- others need not walk the ring.
  if coalesce(sb_internal._cell(_poison_limit_reached.queue_id, 'poison_alarm'), 0) = 0 then
    return false;
  end if;
  return (
    select sb_internal._poison_count(_poison_limit_reached.queue_id) >= b.poison_message_threshold
      from sb_internal.broker as b
     where b.singleton);
end
$$;
comment on function sb_internal._poison_limit_reached(integer) is
  'Whether so many receives in a row were rolled back that the queue is off.';
revoke all on function sb_internal._poison_limit_reached(integer) from public;
