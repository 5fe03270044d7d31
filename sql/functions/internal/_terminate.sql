create or replace function sb_internal._terminate(
  conversation_handle uuid,
  code integer,
  description text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint := sb_internal._lock_conversation(_terminate.conversation_handle);
begin
  -- Also for a side in DO, whose own word to the peer is still waiting to leave and goes with it.
  perform sb_internal._error_endpoint(e.peer_handle, _terminate.code, _terminate.description);
  perform sb_internal._forget(e, false);
end
$$;
comment on function sb_internal._terminate(uuid, integer, text) is
  'Ends one side on behalf of the broker (service or contract dropped): the peer gets an Error with the code, everything of this side goes. Takes the locks of _lock_conversation.';
revoke all on function sb_internal._terminate(uuid, integer, text) from public;
