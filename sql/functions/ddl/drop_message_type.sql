create or replace function sb.drop_message_type(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_message_type(
    current_user, drop_message_type.name, drop_message_type.if_exists
  );
end;
comment on function sb.drop_message_type(text, boolean) is
  'DROP MESSAGE TYPE. For the owner and admins. Errors: 42501, 42704, S3716 in use by a contract (R-028), S9663 system type. Locks: the catalog.';
revoke all on function sb.drop_message_type(text, boolean) from public;
