create or replace function sb.begin_dialog(
  from_service text,
  to_service text,
  on_contract text default 'DEFAULT',
  broker_instance text default null,
  related_conversation uuid default null,
  related_conversation_group uuid default null,
  lifetime interval default null,
  encryption boolean default true
)
  returns uuid
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._begin_dialog(current_user, begin_dialog.from_service, begin_dialog.to_service,
    begin_dialog.on_contract, begin_dialog.broker_instance, begin_dialog.related_conversation,
    begin_dialog.related_conversation_group, begin_dialog.lifetime);
end;
comment on function sb.begin_dialog(text, text, text, text, uuid, uuid, interval, boolean) is
  'BEGIN DIALOG: begins a dialog from a service of this database to a service that need not exist yet, and returns the conversation handle of the initiator. Nothing is sent (R-146). related_conversation or related_conversation_group puts it into a group, which is locked, waiting if need be; a group id not in use is created with that id. lifetime: an interval, null for no limit. encryption is accepted and has no effect inside one database. Needs receive on the queue of from_service and references on the contract. Errors: S8423 from_service, S8425 contract, S8426 related conversation, S9610 group of another service, S8411 lifetime, 22023 both related arguments, 42501, 42602.';
revoke all on function sb.begin_dialog(text, text, text, text, uuid, uuid, interval, boolean) from public;
