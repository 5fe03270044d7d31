create or replace function sb.maintain()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._maintain(current_user);
end;
comment on function sb.maintain() is
  'Housekeeping, bounded and never needed for correctness: removes orphaned messages, what conversations ended above read committed have left (in read committed only), and leftovers of dropped queues, delivers what can be delivered, writes down reached poison limits, repeats activation events, drops roles that no longer exist from the access lists. Skips what is locked. For admins; call it about once a minute (the activator does).';
revoke all on function sb.maintain() from public;
