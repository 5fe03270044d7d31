create or replace function sb_internal._write_group(conversation_group_id uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  update sb.conversation_group as g
     set service_id = g.service_id
   where g.conversation_group_id = _write_group.conversation_group_id;
end
$$;
comment on function sb_internal._write_group(uuid) is
  'For whoever joins a group, or leaves it to others: writes its row, so that a repeatable read transaction that sees the group as it was before fails (40001) rather than decide by that whether it ends with its own conversation. The caller holds the group lock.';
revoke all on function sb_internal._write_group(uuid) from public;
