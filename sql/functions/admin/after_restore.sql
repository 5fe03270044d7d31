create or replace function sb.after_restore()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._after_restore(current_user);
end;
comment on function sb.after_restore() is
  'To be called after a data-only restore, a restore without owners or privileges, or a logical failover: forgets search hints and poison counts, which were written in another place, puts the queuing order behind every message, gives the system objects to the owner of sb, and grants anew what the catalog says of roles. For admins. Locks: the catalog.';
revoke all on function sb.after_restore() from public;
