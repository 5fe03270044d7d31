create or replace function sb_internal._prune_roles()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  existing name[] := array(select r.rolname from pg_roles as r) || name 'public';
begin
  update sb_internal.queue as q
     set receivers = array(select r.role from unnest(q.receivers) as r (role) where r.role = any (existing))
   where not q.receivers <@ existing;
  update sb_internal.service as s
     set senders = array(select r.role from unnest(s.senders) as r (role) where r.role = any (existing))
   where not s.senders <@ existing;
  update sb_internal.contract as c
     set referencers = array(select r.role from unnest(c.referencers) as r (role) where r.role = any (existing))
   where not c.referencers <@ existing;
  update sb_internal.broker as b
     set admins = array(select r.role from unnest(b.admins) as r (role) where r.role = any (existing))
   where not b.admins <@ existing;
end
$$;
comment on function sb_internal._prune_roles() is
  'Takes roles that no longer exist out of the access lists, so that a new role of the same name inherits nothing.';
revoke all on function sb_internal._prune_roles() from public;
