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
  'To be called after a data-only restore or a logical failover: forgets search hints and poison counts, which were written in another place, and puts the queuing order behind every message. For admins.';
revoke all on function sb.after_restore() from public;
