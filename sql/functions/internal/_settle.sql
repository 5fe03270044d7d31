-- Deliberately strict: with nothing to settle the call costs nothing.
-- There is no set clause for search_path: the validator runs under the sender's. The setting there is only keeps
-- the planner from reading this body at every SEND in order to inline it.
create or replace function sb_internal._settle(unsettled sb_internal.unsettled)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
  strict
  set check_function_bodies = off
begin atomic
  select sb_internal._send_validated(current_user, (_settle.unsettled).conversation_handles,
    (_settle.unsettled).message_type, (_settle.unsettled).bodies, (_settle.unsettled).is_text,
    sb_internal._run_validator((_settle.unsettled).validator, (_settle.unsettled).validation,
      (_settle.unsettled).bodies));
end;
comment on function sb_internal._settle(sb_internal.unsettled) is
  'Finishes a SEND that waits for a validator function, which runs here with the rights of the caller. Strict: without anything to settle it is not called.';
revoke all on function sb_internal._settle(sb_internal.unsettled) from public;
