create or replace function sb_internal._drop_queue(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  used_by text;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('queue', _drop_queue.name, _drop_queue.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_queue.caller, object.owner, 'drop queue ' || _drop_queue.name);
  perform sb_internal._require_user_object(object.id, 'queue ' || _drop_queue.name);
  select s.name
    into used_by
    from sb_internal.service as s
   where s.queue_id = object.id
   order by s.name
   limit 1;
  if found then
    perform sb_internal._raise('S3716', array['queue ' || _drop_queue.name, 'service ' || used_by]);
  end if;

  -- The queue's sequences stay until a maintain after a minute: a receive that has found the queue still
  -- there reads them.
  perform setval(('sb_internal.queue_' || object.id || '_search')::regclass,
    (date_part('epoch', clock_timestamp()) * 1000)::bigint);
  perform sb_internal._remove_event_notification(n.event_notification_id)
     from sb_internal.event_notification as n
    where n.queue_id = object.id;
  -- Orphans: what had a conversation went with its service.
  delete from sb_internal.message as m
   where m.queue_id = object.id;
  delete from sb_internal.queue as q
   where q.queue_id = object.id;
  perform sb_internal._sync_privileges(object.owner || object.acl);
  perform pg_notify('sb_queue_' || object.id, '');
  perform sb_internal._announce('queue_dropped', 'queue', _drop_queue.name);
end
$$;
comment on function sb_internal._drop_queue(name, text, boolean) is
  'DROP QUEUE behind sb.drop_queue. Wakes waiting receivers, who find the queue gone.';
revoke all on function sb_internal._drop_queue(name, text, boolean) from public;
