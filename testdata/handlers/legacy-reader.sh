#!/bin/sh
# Receives one message a transaction until nothing is left. psql stands for whatever the program connects with.
stopping=
trap 'stopping=1' TERM
while [ -z "$stopping" ]; do
  # SIGTERM goes to the whole process group: let the transaction that is open finish.
  left=$(
    trap '' TERM
    psql -X -A -t -q -v ON_ERROR_STOP=1 -v queue="$SBROKER_QUEUE" "$SBROKER_DATABASE_URL" <<'SQL'
begin;
select count(*) as found, max(r.conversation_handle::text) as dialog,
       coalesce(bool_or(r.message_type_name = 'DEFAULT'), false) as is_work, coalesce(max(sb.body_text(r.message_body)), '') as body
from sb.receive(:'queue', max_messages => 1) as r \gset
\if :found
  \if :is_work
    insert into legacy.received (body) values (:'body');
  \endif
  select from sb.end_conversation(:'dialog');
  \echo more
\endif
commit;
SQL
  ) || exit 1
  [ -n "$left" ] || exit 0
done
