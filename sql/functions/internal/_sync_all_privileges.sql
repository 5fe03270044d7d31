create or replace function sb_internal._sync_all_privileges()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._sync_privileges(array(
    select unnest(b.admins) from sb_internal.broker as b
     union
    select t.owner from sb_internal.message_type as t
     union
    select unnest(c.referencers || c.owner) from sb_internal.contract as c
     union
    select unnest(q.receivers || q.owner) from sb_internal.queue as q
     union
    select unnest(s.senders || s.owner) from sb_internal.service as s
     union
    select r.owner from sb_internal.route as r));
end
$$;
comment on function sb_internal._sync_all_privileges() is
  'Turns what the catalog says of each role it names into privileges: for new functions and views, and after a restore without them. The caller holds the catalog lock.';
revoke all on function sb_internal._sync_all_privileges() from public;
