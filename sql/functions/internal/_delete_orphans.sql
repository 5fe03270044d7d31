create or replace function sb_internal._delete_orphans()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
as $$
declare
  start constant uuid := gen_random_uuid();
  stepped uuid := start;
  wrapped boolean := false;
begin
  -- From conversation to conversation, from a random point on and at most once around: the same work
  -- whatever the backlog, and sooner or later everywhere.
  for step in 1..1000 loop
    select m.conversation_handle
      into stepped
      from sb_internal.message as m
     where m.conversation_handle > stepped
     order by m.conversation_handle
     limit 1;
    if not found then
      exit when wrapped;
      wrapped := true;
      stepped := '00000000-0000-0000-0000-000000000000';
      continue;
    end if;
    exit when wrapped and stepped > start;

    continue when exists (
      select 1
        from sb_internal.endpoint as e
       where e.conversation_handle = stepped
         and e.state <> 'DO');
    delete from sb_internal.message as m
     where m.ctid = any (array(
       select o.ctid
         from sb_internal.message as o
        where o.conversation_handle = stepped
        limit 10000
          for update skip locked));
  end loop;
end
$$;
comment on function sb_internal._delete_orphans() is
  'Deletes messages whose endpoint has gone, because both sides ended at once: they never count as ready, nobody needs them gone. Looks at 1000 conversations a call.';
revoke all on function sb_internal._delete_orphans() from public;
