create or replace function sb_internal._back_off_group(caller name, conversation_group_id uuid)
  returns interval
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  failed_at timestamptz := sb_internal._now();
  delay interval;
  failed integer;
begin
  perform sb_internal._require_admin(_back_off_group.caller, 'back off a conversation group');
  -- Failures of long ago are not held against a group that has worked since.
  insert into sb_internal.group_backoff as b (conversation_group_id, not_before, failures)
  values (_back_off_group.conversation_group_id, failed_at, 1)
  on conflict on constraint group_backoff_pkey do update
     set failures = case when b.not_before < failed_at - interval '1 minute' then 1 else b.failures + 1 end
  returning b.failures into failed;
  delay := least(30, 0.1 * power(2, least(failed, 10) - 1)) * (0.9 + 0.2 * random()) * interval '1 second';
  update sb_internal.group_backoff as b
     set not_before = failed_at + delay
   where b.conversation_group_id = _back_off_group.conversation_group_id;
  return delay;
end
$$;
comment on function sb_internal._back_off_group(name, uuid) is
  'Back-off of a group behind sb.back_off_group.';
revoke all on function sb_internal._back_off_group(name, uuid) from public;
