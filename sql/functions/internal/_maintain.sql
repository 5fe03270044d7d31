create or replace function sb_internal._maintain(caller name)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_maintain.caller, 'maintain');
  perform sb_internal._delete_orphans();
  delete from sb_internal.group_backoff as b
   where b.not_before < sb_internal._now() - interval '1 hour';
  delete from sb_internal.activated_task as t
   where not exists (
     select 1
       from pg_stat_get_activity(t.pid) as a);
  perform sb_internal._write_poison_limits();
  perform sb_internal._deliver(null, null);
  -- QUEUE_ACTIVATION again: one that was left to the holder of the monitor's row and not sent by him, and,
  -- since the program it started may have died, once a minute while there is something to receive (X-16).
  update sb_internal.queue_monitor as m
     set state = 'INACTIVE'
   where m.queue_id = any (array(
     select o.queue_id
       from sb_internal.queue_monitor as o
       join sb_internal.queue as q on q.queue_id = o.queue_id
      where q.has_activation_event
        and o.state <> 'INACTIVE'
        and o.last_activated_time < sb_internal._now() - interval '1 minute'
        for no key update of o skip locked));
  perform sb_internal._monitor_arrival(q.queue_id)
     from sb_internal.queue as q
    where q.has_activation_event
      and (exists (
        select 1
          from sb_internal.message as m
         where m.queue_id = q.queue_id)
      or exists (
        select 1
          from sb_internal.due as d
         where d.queue_id = q.queue_id
           and d.due_at <= sb_internal._now()));
  perform sb_internal._prune_roles();
  perform sb_internal._drop_stale_sequences();
  perform sb_internal._tie_loose_ends();  -- last: it locks groups
end
$$;
comment on function sb_internal._maintain(name) is
  'sb.maintain with the caller''s rights checked.';
revoke all on function sb_internal._maintain(name) from public;
