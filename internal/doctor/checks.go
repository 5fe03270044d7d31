package doctor

// What several checks look at. Where there may be millions of rows, only so many are looked at: the state of each is
// computed.
const (
	// queues is q (sb.service_queues), s (sb.queue_statistics) and the poison limit.
	queues = `
  sb.service_queues as q
  join sb.queue_statistics as s on s.queue_id = q.queue_id
  join (select o.value::integer as threshold from sb.options as o where o.name = 'poison_message_threshold') as o on true`

	// endpoints is a sample of sb.conversation_endpoints.
	endpoints = `(select c.* from sb.conversation_endpoints as c limit 10000)`

	// activators is the sessions of activators, less those that answer for their metrics.
	activators = `
  (select a.pid, a.usesysid, a.usename
     from pg_stat_activity as a
    where a.datname = current_database()
      and a.application_name like 'sbactivator %')`

	// candidates is what an activation procedure may be.
	candidates = `
  (select f.oid, f.pronargs, f.prokind, n.oid as schema_oid, n.nspname, f.proname
     from pg_proc as f
     join pg_namespace as n on n.oid = f.pronamespace
    where f.prokind in ('f', 'p'))`
)

// Conditions on q and s of queues, with @patience.
const (
	// Unread is for a queue that nobody looks into although messages wait.
	Unread = `(q.is_receive_enabled
   and s.oldest_ready_age > @patience::text::interval
   and coalesce(s.last_receive_time < clock_timestamp() - @patience::text::interval, true))`

	// NotReceived is for a queue of which an activator starts the procedure again and again, and nothing comes of it. That
	// it looks itself shows in last_receive_time. A reader that has been at work for long may be in its first call, and
	// what an open transaction holds nobody can receive.
	NotReceived = `(q.is_receive_enabled
   and q.is_activation_enabled
   and s.oldest_ready_age > @patience::text::interval
   and s.last_receive_time >= clock_timestamp() - @patience::text::interval
   and exists (
         select
           from sb.dm_broker_queue_monitors as m
          where m.queue_id = q.queue_id
            and m.state = 'NOTIFIED'
            and coalesce(m.last_activated_time < clock_timestamp() - @patience::text::interval, true))
   and not exists (
         select
           from sb.dm_broker_activated_tasks as t
          where t.queue_id = q.queue_id
            and t.started_at < clock_timestamp() - @patience::text::interval)
   and not exists (
         select
           from pg_locks as l
           join pg_stat_activity as a on a.pid = l.pid
          where l.locktype = 'relation'
            and l.database = (select d.oid from pg_database as d where d.datname = current_database())
            and l.relation = 'sb.conversation_group'::regclass
            and l.mode in ('RowShareLock', 'RowExclusiveLock')
            and l.granted
            and a.xact_start < clock_timestamp() - @patience::text::interval))`
)

// Who may do what is offered, where that is not a matter of rights in sb.
const (
	superuser     = "a superuser"
	databaseOwner = "the owner of the database"
	sbOwner       = "the owner of sb"
	grantor       = "a superuser, or whoever may grant that role"
	ofBroker      = "its owner, or an admin of sb"
)

// counted is SQL for a number and what is counted, in the singular where that is right.
func counted(n, one, many string) string {
	return "case " + n + " when 1 then '1 " + one + "' else " + n + " || ' " + many + "' end"
}

// schemaOlder is looked at first: much of the rest may not be there yet.
const schemaOlder = "schema-older"

// checks is every check. A query names objects in its sentences with double quotes, and in what it offers to copy with
// format's %L and %I. Lines of that are separated by \x1e, because a name may hold line breaks of its own.
var checks = []check{
	// ---------------------------------------------------------------------------------------------
	// The installation and the server.
	// ---------------------------------------------------------------------------------------------
	{
		name: schemaOlder, severity: Error,
		why: "The program calls functions that the database does not have yet.",
		query: `
select format('The database has version %s of sb; this program needs version %s.', coalesce(b.schema_version, 0), @schema_version::bigint),
       '-- run: sbactivator migrate up'
  from sb.broker as b
 where coalesce(b.schema_version, 0) < @schema_version::bigint`,
	},
	{
		name: "schema-newer", severity: Warning,
		why: "An older program may miss what the newer version of sb expects of it.",
		query: `
select format('The database has version %s of sb; this program knows only version %s.', b.schema_version, @schema_version::bigint),
       '-- install the sbactivator that has migrated this database; its name and version: sbactivator version'
  from sb.broker as b
 where b.schema_version > @schema_version::bigint`,
	},
	{
		name: "broker-disabled", severity: Error,
		why: "Everything that is sent waits in the transmission queue until the broker is enabled.",
		query: `
select 'The broker is disabled in this database.', 'select sb.enable_broker();'
  from sb.broker as b
 where not b.is_broker_enabled`,
	},
	{
		name: "read-only", severity: Error, by: databaseOwner,
		why: "Every verb of sb writes, receive too.",
		query: `
select 'This server is a standby; nothing can be sent or received here.',
       '-- connect to the primary: several hosts and target_session_attrs=read-write in the database url'
 where pg_is_in_recovery()
 union all
select format('Transactions in database "%s" are read-only unless they say otherwise.', current_database()),
       format('set default_transaction_read_only = off; alter database %I reset default_transaction_read_only;', current_database())
 where current_setting('default_transaction_read_only')::boolean
   and not pg_is_in_recovery()`,
	},
	{
		name: "isolation", severity: Warning, by: databaseOwner,
		why: "The verbs are written for read committed; above it they fail with 40001 wherever others have been at work meanwhile.",
		query: `
select format('Transactions are %s unless they say otherwise.', current_setting('default_transaction_isolation')),
       format('alter database %I reset default_transaction_isolation;', current_database())
 where current_setting('default_transaction_isolation') <> 'read committed'`,
	},
	{
		name: "durability", severity: Error, by: superuser,
		why: "After a crash of the machine the database may be damaged, messages with it.",
		query: `
select format('%s is off.', s.name), format('alter system reset %I; select pg_reload_conf();', s.name)
  from pg_settings as s
 where s.name in ('fsync', 'full_page_writes')
   and s.setting = 'off'`,
	},
	{
		name: "synchronous-commit", severity: Advice, by: superuser,
		why: "A crash may undo the last moments before it, for messages and work alike: what a client was told to have been sent may be gone.",
		query: `
select 'synchronous_commit is off.', 'alter system reset synchronous_commit; select pg_reload_conf();'
 where current_setting('synchronous_commit') = 'off'`,
	},
	{
		name: "connections", severity: Warning,
		why: "Each reader has a connection: at full load the activator, and everybody else, is refused some.",
		query: `
select format('The queues allow for %s, an activator needs 5 connections more, and the database has %s for all purposes.',
         ` + counted("r.readers", "reader", "readers") + `, c.connections),
       format(E'select sb.alter_queue(%L, max_queue_readers => %s);  -- the queue with most\x1e-- or: alter system set max_connections = %s; and restart the server',
         r.largest, greatest(1, r.most - (r.readers + 5 - c.connections)), r.readers + 50)
  from (
    select sum(q.max_readers) as readers, max(q.max_readers) as most,
           (array_agg(q.name order by q.max_readers desc))[1] as largest
      from sb.service_queues as q
     where q.is_activation_enabled) as r
 cross join (
   select least(current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
                  - coalesce(current_setting('reserved_connections', true)::integer, 0),
                nullif(d.datconnlimit, -1)) as connections
     from pg_database as d
    where d.datname = current_database()) as c
 where r.readers + 5 > c.connections`,
	},
	{
		name: "clock", severity: Advice,
		why: "Timers and lifetimes go by the database's clock alone, but times in logs and in messages will not fit together.",
		query: `
select format('The clocks of this machine and of the database server differ by %s seconds.',
         round(abs(extract(epoch from clock_timestamp() - @client_time::timestamptz))::numeric)),
       '-- synchronise both clocks (NTP)'
 where abs(extract(epoch from clock_timestamp() - @client_time::timestamptz)) > 5`,
	},

	// ---------------------------------------------------------------------------------------------
	// Queues.
	// ---------------------------------------------------------------------------------------------
	{
		name: "queue-poison", severity: Error,
		why: "A message that makes its reader fail each time would be tried for ever. Mend the reader before you start the queue again.",
		query: `
select format('Queue "%s" is stopped by poison handling: %s received from it and rolled back. %s in it, and %s in the transmission queue for it.', q.name,
         case when s.consecutive_rollbacks > 0 then ` + counted("s.consecutive_rollbacks", "transaction", "transactions in a row") + `
              else 'too many transactions in a row (how many is forgotten)' end,
         ` + counted("s.ready_messages", "message waits", "messages wait") + `, s.transmission_backlog),
       format(E'-- first see in the log of the activator, or of whatever reads the queue, what has failed\x1eselect sb.alter_queue(%L, enabled => true);', q.name)
  from ` + queues + `
 where q.is_poison_disabled
 order by q.name collate "C"`,
	},
	{
		name: "queue-off", severity: Error,
		why: "Receives from a stopped queue fail with S9617, and what is sent to it waits in the transmission queue.",
		query: `
select format('Queue "%s" is stopped. %s in it, and %s in the transmission queue for it.', q.name,
         ` + counted("s.ready_messages", "message waits", "messages wait") + `, s.transmission_backlog),
       format('select sb.alter_queue(%L, enabled => true);', q.name)
  from ` + queues + `
 where not q.is_receive_enabled
   and not q.is_poison_disabled
 order by q.name collate "C"`,
	},
	{
		name: "queue-rollbacks", severity: Warning,
		why: "When the limit is reached, poison handling stops the queue.",
		query: `
select format('Of queue "%s" the last %s rolled back; at %s it is stopped.', q.name,
         ` + counted("s.consecutive_rollbacks", "receive was", "receives were") + `, o.threshold),
       '-- the log of the activator, or of whatever reads the queue, says why'
  from ` + queues + `
 where q.is_receive_enabled
   and q.is_poison_message_handling_enabled
   and s.consecutive_rollbacks * 2 > o.threshold
 order by q.name collate "C"`,
	},
	{
		name: "groups-blocked", severity: Warning,
		why: "An activator leaves a conversation group alone for up to 30 seconds after its handler has failed; the others go on.",
		query: `
select format('Of queue "%s" %s held back, because a handler has failed.', q.name,
         ` + counted("s.blocked_groups", "conversation group is", "conversation groups are") + `),
       '-- the log of the activator says why'
  from ` + queues + `
 where s.blocked_groups > 0
 order by q.name collate "C"`,
	},
	{
		name: "activator-none", severity: Error,
		why: "Activation and handlers need an activator running somewhere; without one the messages wait.",
		query: `
select format('No activator is connected, and queues count on one: %s.', string_agg(format('"%s"', q.name), ', ' order by q.name collate "C")),
       '-- run: sbactivator run'
  from sb.service_queues as q
 where (q.is_activation_enabled or q.name = any (@handled::text[]))
   and not exists (select from ` + activators + ` as a)
   and not exists (select from sb.dm_broker_activated_tasks as t)
having count(*) > 0`,
	},
	{
		name: "unread", severity: Error,
		why: "Nobody receives from the queue.",
		query: `
select format('Messages wait in queue "%s" since %s, and %s: %s.', q.name,
         date_trunc('second', clock_timestamp() - s.oldest_ready_age),
         coalesce('nobody has looked for any since ' || date_trunc('second', s.last_receive_time), 'nobody has ever looked for any'),
         case when q.name = any (@handled::text[]) then 'no activator with this configuration runs its handler, or that cannot'
              when q.is_activation_enabled then 'its activation procedure does not receive from it, or no activator runs it'
              when q.activation_procedure is not null then 'its activation is switched off'
              else 'it has no activation procedure, nor a handler in this configuration' end),
       case when q.name = any (@handled::text[]) then '-- run: sbactivator run; its log says more'
            when q.is_activation_enabled then '-- the log of the activator says more, and so does: select * from sb.dm_broker_queue_monitors;'
            when q.activation_procedure is not null then format('select sb.alter_queue(%L, activation_enabled => true);', q.name)
            else format(E'-- start the program that reads it, or name a procedure that does:\x1e-- select sb.alter_queue(%L, activation_procedure => ''schema.name'');', q.name) end
  from ` + queues + `
 where ` + Unread + `
 order by q.name collate "C"`,
	},
	{
		name: "not-received", severity: Error,
		why: "The activator starts the procedure again and again, at most every 30 seconds, and the messages stay where they are.",
		query: `
select format('Messages wait in queue "%s" since %s, and its activation procedure %s fails before it receives them, or does not receive.', q.name,
         date_trunc('second', clock_timestamp() - s.oldest_ready_age), q.activation_procedure),
       format(E'-- the log of the activator says why; or look, as it would be run:\x1e-- begin; set local role %I; %s %s(); rollback;',
         q.execute_as,
         coalesce((
           select case f.prokind when 'p' then 'call' else 'select' end
             from parse_ident(q.activation_procedure) as p (parts)
             join ` + candidates + ` as f on f.nspname = p.parts[1] and f.proname = p.parts[2] and f.pronargs = 0), 'select'),
         q.activation_procedure)
  from ` + queues + `
 where ` + NotReceived + `
 order by q.name collate "C"`,
	},
	{
		name: "handler-queue", severity: Error,
		why: "A handler does nothing until there is a queue of its name; names are case-sensitive.",
		query: `
select format('The configuration has a handler for queue "%s", which does not exist%s.', h.queue, '; the nearest is "' || nullif(h.nearest, '') || '"'),
       '-- correct the name in the configuration, or create the queue: sb.create_queue'
  from unnest(@handled::text[], @nearest::text[]) as h (queue, nearest)
 where not exists (select from sb.service_queues as q where q.name = h.queue)
 order by h.queue collate "C"`,
		adminOnly: true,
	},
	{
		name: "retention", severity: Warning,
		why: "With retention a message is kept until its conversation ends on that side. Conversations that nobody ends keep everything.",
		query: `
select format('Queue "%s" has retention, and keeps messages for more than a day: nobody ends their conversations.', q.name),
       format(E'select sb.alter_queue(%L, retention => false);  -- for later messages\x1e-- and end the conversations: sbactivator conversation list --queue …', q.name)
  from sb.service_queues as q
 where q.is_retention_enabled
   and exists (
         select
           from sb.queue_messages as m
          where m.queue_name = q.name
            and m.status <> 1
            and m.message_enqueue_time < now() - interval '1 day')
 order by q.name collate "C"`,
	},

	// ---------------------------------------------------------------------------------------------
	// Activation.
	// ---------------------------------------------------------------------------------------------
	{
		name: "procedure-missing", severity: Error,
		why: "The activator has nothing to call.",
		query: `
select format('Activation procedure %s of queue "%s" does not exist.', q.activation_procedure, q.name),
       format(E'-- create it again, or name another one, or none:\x1eselect sb.alter_queue(%L, drop_activation => true);', q.name)
  from sb.service_queues as q
 cross join parse_ident(q.activation_procedure) as p (parts)
 where q.activation_procedure is not null
   and not exists (
         select
           from ` + candidates + ` as f
          where f.nspname = p.parts[1]
            and f.proname = p.parts[2])
 order by q.name collate "C"`,
	},
	{
		name: "procedure-arguments", severity: Error,
		why: "An activation procedure is called without arguments.",
		query: `
select format('Activation procedure %s of queue "%s" takes arguments.', q.activation_procedure, q.name),
       format(E'-- create one of that name without arguments, or name another one, or none:\x1eselect sb.alter_queue(%L, drop_activation => true);', q.name)
  from sb.service_queues as q
 cross join parse_ident(q.activation_procedure) as p (parts)
 where (select min(f.pronargs)
          from ` + candidates + ` as f
         where f.nspname = p.parts[1]
           and f.proname = p.parts[2]) > 0
 order by q.name collate "C"`,
	},
	{
		name: "procedure-rights", severity: Error, by: "the owner of the schema and of the procedure",
		why: "The procedure is called as the role in execute_as, which has to be allowed to.",
		query: `
select format('Queue "%s" runs %s as role "%s", which may not execute it.', q.name, q.activation_procedure, q.execute_as),
       format(E'grant usage on schema %I to %I; grant execute on routine %s() to %I;', f.nspname, q.execute_as, q.activation_procedure, q.execute_as)
  from sb.service_queues as q
 cross join parse_ident(q.activation_procedure) as p (parts)
  join ` + candidates + ` as f on f.nspname = p.parts[1] and f.proname = p.parts[2] and f.pronargs = 0
  join pg_roles as r on r.rolname = q.execute_as
 where not (has_schema_privilege(r.oid, f.schema_oid, 'usage') and has_function_privilege(r.oid, f.oid, 'execute'))
 order by q.name collate "C"`,
	},
	{
		name: "execute-as-missing", severity: Error, by: "a role with CREATEROLE",
		why: "The activator cannot take a role that does not exist; after a restore into another cluster roles have to be made again.",
		query: `
select format('Queue "%s" runs its procedure as role "%s", which does not exist.', q.name, q.execute_as),
       format('create role %I;  -- or another one: select sb.alter_queue(%L, execute_as => …);', q.execute_as, q.name)
  from sb.service_queues as q
 where q.execute_as is not null
   and not exists (select from pg_roles as r where r.rolname = q.execute_as)
 order by q.name collate "C"`,
	},
	{
		name: "execute-as-superuser", severity: Warning,
		why: "Whoever may replace the procedure, or gets it to do something else, has the whole server.",
		query: `
select format('Queue "%s" runs its procedure as the superuser "%s".', q.name, q.execute_as),
       format('-- with the rights it needs and no more: select sb.alter_queue(%L, execute_as => …);', q.name)
  from sb.service_queues as q
  join pg_roles as r on r.rolname = q.execute_as
 where r.rolsuper
 order by q.name collate "C"`,
	},
	{
		name: "execute-as-stranger", severity: Error,
		why: "The procedure is run as a role that may not call a single verb of sb.",
		query: `
select format('Queue "%s" runs its procedure as role "%s", which has no right in sb at all.', q.name, q.execute_as),
       format('select sb.grant_receive(%L, %L);', q.name, q.execute_as)
  from sb.service_queues as q
  join pg_roles as r on r.rolname = q.execute_as
 where not has_schema_privilege(r.oid, 'sb', 'usage')
 order by q.name collate "C"`,
	},
	{
		name: "execute-as-receive", severity: Error,
		why: "The procedure receives with the rights of the role in execute_as.",
		roles: `
select q.execute_as::text, array_agg(q.name order by q.name collate "C")
  from sb.service_queues as q
  join pg_roles as r on r.rolname = q.execute_as
 where has_schema_privilege(r.oid, 'sb', 'usage')
   and pg_has_role(r.oid, case when current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end)
 group by q.execute_as
 order by q.execute_as`,
		query: `
select format('Queue "%s" runs its procedure as role "%s", which may not receive from it.', n.name, @role::text),
       format('select sb.grant_receive(%L, %L);', n.name, @role::text)
  from unnest(@subjects::text[]) with ordinality as n (name, place)
 where not exists (
         select
           from sb.service_queues as q
          where q.name = n.name)
 order by n.place`,
	},
	{
		name: "activator-membership", severity: Error, by: grantor,
		why: "The activator does SET ROLE to execute_as before it calls the procedure, so its login role has to be a member.",
		query: `
select format('Queue "%s" runs its procedure as role "%s", of which %s "%s" is no member.', q.name, q.execute_as,
         case when l.connected then 'the activator''s role' else 'this role' end, l.rolname),
       format('grant %I to %I;', q.execute_as, l.rolname)
  from sb.service_queues as q
  join pg_roles as r on r.rolname = q.execute_as
  join (
    select distinct o.oid, o.rolname, true as connected
      from ` + activators + ` as a
      join pg_roles as o on o.oid = a.usesysid
     union all
    -- Nobody is there: whoever uses this program may be about to run one.
    select o.oid, o.rolname, false
      from pg_roles as o
     where o.rolname = current_user
       and not exists (select from ` + activators + ` as a)) as l on true
 where q.is_activation_enabled
   and not pg_has_role(l.oid, r.oid, case when current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end)
 order by q.name collate "C", l.rolname`,
	},
	{
		name: "activator-superuser", severity: Error,
		why: "SET ROLE is no protection against code that can undo it, so an activator that is a superuser runs no activation procedures.",
		query: `
select format('An activator is logged in as the superuser "%s"; it runs no activation procedures.', a.usename),
       E'-- let it log in as a role of its own:\x1e-- create role sbactivator login; select sb.grant_admin(''sbactivator'');'
  from (select distinct o.usesysid, o.usename from ` + activators + ` as o) as a
  join pg_roles as r on r.oid = a.usesysid
 where r.rolsuper
   and exists (select from sb.service_queues as q where q.is_activation_enabled)`,
	},

	// ---------------------------------------------------------------------------------------------
	// Rights (docs/security.md).
	// ---------------------------------------------------------------------------------------------
	{
		name: "reads-all-data", severity: Warning, by: grantor,
		why: "Such a role may use schema sb_internal. With any right in sb besides, it can name the inner functions and tell them that it is somebody else: it is as good as the owner of sb.",
		query: `
select format('Role "%s" has rights in sb%s, and is a member of %s.', r.rolname,
         case when bool_or(a.grantee <> 0) then '' else ' by way of PUBLIC' end, string_agg(distinct d.role, ' and ')),
       format('revoke %s from %I;  -- or from the role through which it is a member', string_agg(distinct d.role, ', '), r.rolname)
  from pg_roles as r
 cross join (values ('pg_read_all_data'), ('pg_write_all_data')) as d (role)
  join pg_namespace as n on n.nspname = 'sb'
 cross join aclexplode(n.nspacl) as a
 where not r.rolsuper
   and not starts_with(r.rolname, 'pg_')
   and not pg_has_role(r.oid, n.nspowner, 'usage')
   and pg_has_role(r.oid, d.role, 'usage')
   and a.grantee <> n.nspowner
   and (a.grantee = 0 or pg_has_role(r.oid, a.grantee, 'usage'))
 group by r.rolname
 order by r.rolname`,
	},
	{
		name: "state-table-owner", severity: Warning, by: superuser,
		why: "Whoever ends the last conversation of a group, any group, runs the triggers of such a table in his session, and waits for locks on it.",
		query: `
select format('State table %s was created with drop_on_end and belongs to role "%s", which is no admin of sb.', c.oid::regclass, r.rolname),
       format('alter table %s owner to %I;  -- or drop it: sb.drop_state_table', c.oid::regclass, pg_get_userbyid(n.nspowner))
  from pg_constraint as k
  join pg_class as c on c.oid = k.conrelid
  join pg_roles as r on r.oid = c.relowner
  join pg_namespace as n on n.nspname = 'sb'
 cross join sb.broker as b
 where k.contype = 'f'
   and k.confrelid = 'sb.conversation_group'::regclass
   and not pg_has_role(r.oid, n.nspowner, 'usage')
   and not exists (
         select
           from unnest(b.admins) as m (name)
           join pg_roles as o on o.rolname = m.name
          where pg_has_role(r.oid, o.oid, 'usage'))
 order by 1`,
	},

	// ---------------------------------------------------------------------------------------------
	// What services are made of.
	// ---------------------------------------------------------------------------------------------
	{
		name: "owner-missing", severity: Error,
		why: "Rights go by the owner: of a service whose owner is gone, every message comes back as Error -8494 or waits for somebody with the right.",
		query: `
select format('%s "%s" belongs to role "%s", which does not exist.', initcap(o.kind), o.name, o.owner),
       format('select sb.alter_authorization(%L, %L, %L);', o.kind, o.name, current_user)
  from (
    select 'queue' as kind, q.name, q.owner, q.queue_id as id from sb.service_queues as q
     union all
    select 'service', s.name, s.owner, s.service_id from sb.services as s
     union all
    select 'contract', c.name, c.owner, c.service_contract_id from sb.service_contracts as c
     union all
    select 'message type', t.name, t.owner, t.message_type_id from sb.service_message_types as t
     union all
    select 'route', r.name, r.owner, r.route_id from sb.routes as r) as o
 where o.id >= 65536
   and not exists (select from pg_roles as r where r.rolname = o.owner)
 order by o.kind, o.name collate "C"`,
	},
	{
		name: "validator-missing", severity: Error,
		why: "Sending a message of the type fails.",
		query: `
select format('Message type "%s" is validated by function %s, which does not exist.', t.name, t.validator),
       format(E'-- create it again, or do without:\x1eselect sb.alter_message_type(%L, ''NONE'');', t.name)
  from sb.service_message_types as t
 cross join parse_ident(t.validator) as p (parts)
 where t.validator is not null
   and not exists (
         select
           from pg_proc as f
           join pg_namespace as n on n.oid = f.pronamespace
          where n.nspname = p.parts[1]
            and f.proname = p.parts[2]
            and f.pronargs = 1
            and f.proargtypes[0] = case t.validation_kind when 'VALID_XML' then 'xml'::regtype else 'jsonb'::regtype end)
 order by t.name collate "C"`,
	},
	{
		name: "contract-not-accepted", severity: Error,
		why: "The first message of such a dialog comes back as Error -8408.",
		query: `
select format('%s with service "%s" on contract "%s", %s.', ` + counted("count(*)", "dialog is", "dialogs are") + `, e.far_service, coalesce(c.name, '?'),
         case when exists (select from sb.service_contract_usages as u where u.service_id = s.service_id)
              then 'which it does not accept' else 'but it accepts no contract at all' end),
       format('select sb.alter_service(%L, add_contracts => array[%L]);', e.far_service, c.name)
  from ` + endpoints + ` as e
  join sb.services as s on s.name = e.far_service
  left join sb.service_contracts as c on c.service_contract_id = e.service_contract_id
 where e.is_initiator
   and e.state in ('SO', 'ER')
   and e.far_broker_instance is null
   and not exists (
         select
           from sb.service_contract_usages as u
          where u.service_id = s.service_id
            and u.service_contract_id = e.service_contract_id)
 group by e.far_service, c.name, s.service_id
 order by e.far_service collate "C", c.name collate "C"`,
	},
	{
		name: "route-expired", severity: Warning,
		why: "An expired route is not used any more.",
		query: `
select format('Route "%s" has expired at %s.', r.name, r.lifetime), format('select sb.drop_route(%L);', r.name)
  from sb.routes as r
 where r.lifetime <= now()
 order by r.name collate "C"`,
	},
	{
		name: "route-remote", severity: Warning,
		why: "Messages do not travel between databases yet: what takes this route waits in the transmission queue.",
		query: `
select format('Route "%s" leads to %s, out of this database.', r.name, r.address), format('select sb.drop_route(%L);', r.name)
  from sb.routes as r
 where r.address <> 'LOCAL'
   and (r.lifetime > now()) is not false
 order by r.name collate "C"`,
	},
	{
		name: "priority-unmatched", severity: Advice,
		why: "A priority applies to dialogs with a service of exactly that name.",
		query: `
select format('Broker priority "%s" is for dialogs with service "%s", which does not exist here.', p.name, p.remote_service_name),
       format('select sb.drop_broker_priority(%L);', p.name)
  from sb.conversation_priorities as p
 where p.remote_service_name is not null
   and not exists (select from sb.services as s where s.name = p.remote_service_name)
 order by p.name collate "C"`,
		adminOnly: true,
	},
	{
		name: "priority-not-honored", severity: Advice,
		why: "Receive goes by priority in any case; what waits in the transmission queue only with this option.",
		query: `
select format('There %s, but honor_broker_priority is off.', case count(*) when 1 then 'is 1 broker priority' else 'are ' || count(*) || ' broker priorities' end),
       'select sb.set_option(''honor_broker_priority'', ''on'');'
  from sb.conversation_priorities as p
 cross join sb.broker as b
 where not b.is_honor_broker_priority_on
having count(*) > 0`,
		adminOnly: true,
	},

	// ---------------------------------------------------------------------------------------------
	// Conversations and what is on its way.
	// ---------------------------------------------------------------------------------------------
	{
		name: "transmission", severity: Error,
		why: "Messages that cannot be delivered wait in the transmission queue, and everything their conversation sends waits behind them.",
		query: `
select format('%s%s for service "%s", the oldest since %s. %s', case when count(*) = 1000 then 'At least ' else '' end,
         ` + counted("count(*)", "message waits", "messages wait") + `, t.to_service_name, date_trunc('second', min(t.enqueue_time)),
         case t.transmission_status when '' then 'Nothing is in their way: nobody moves them on.' else t.transmission_status end),
       case
         when t.transmission_status = '' then 'select sb.deliver();  -- activators do that'
         when t.transmission_status like 'The broker is disabled%' then 'select sb.enable_broker();'
         when t.transmission_status like 'No route matches%' then
           format('select sb.create_route(%L, address => ''LOCAL'', service_name => %L);', left(t.to_service_name, 128), t.to_service_name)
         when t.transmission_status like 'The destination service%' then
           format('-- select sb.create_service(%L, ''its queue'', array[%L]);', t.to_service_name, min(t.service_contract_name))
         when t.transmission_status like 'The destination queue%' then
           coalesce((
             select format('select sb.alter_queue(%L, enabled => true);', q.name)
               from sb.services as s
               join sb.service_queues as q on q.queue_id = s.service_queue_id
              where s.name = t.to_service_name), '-- its owner has to start it: sb.alter_queue')
         when t.transmission_status like 'Held:%' then
           format('select sb.end_conversation(h) from unnest(%L::uuid[]) as h;', (array_agg(distinct t.conversation_handle::text))[:100])
         else '-- see sbactivator conversation show ' || min(t.conversation_handle::text)
       end
  from (select o.* from sb.transmission_queue as o limit 1000) as t
 group by t.to_service_name, t.transmission_status
having min(t.enqueue_time) < now() - @patience::text::interval
 order by t.to_service_name collate "C", t.transmission_status`,
	},
	{
		name: "timer-overdue", severity: Warning,
		why: "A due timer is a message like any other: somebody has to receive it.",
		query: `
select format('%s due in conversations of service "%s", the oldest since %s, and nobody receives from queue "%s".',
         ` + counted("count(*)", "timer is", "timers are") + `, s.name, date_trunc('second', min(e.dialog_timer)), q.name),
       format('-- something has to receive from queue %L', q.name)
  from ` + endpoints + ` as e
  join sb.services as s on s.service_id = e.service_id
  join sb.service_queues as q on q.queue_id = s.service_queue_id
 where e.dialog_timer < now() - @patience::text::interval
   and e.state <> 'DO'
 group by s.name, q.name
 order by s.name collate "C"`,
	},
	{
		name: "endpoints-left", severity: Warning,
		why: "The other side has ended, or an Error has come, and was received; this side has to end as well, or its endpoint stays for ever.",
		query: `
select format(case count(*) when 1 then '%s conversation of service "%s" with "%s" is over but not ended on this side (%s).'
         else '%s conversations of service "%s" with "%s" are over but not ended on this side (%s).' end, count(*), s.name, e.far_service, e.state_desc),
       format($mend$select sb.end_conversation(e.conversation_handle) from sb.conversation_endpoints as e join sb.services as s on s.service_id = e.service_id where s.name = %L and e.far_service = %L and e.state = %L;$mend$, s.name, e.far_service, e.state)
  from ` + endpoints + ` as e
  join sb.services as s on s.service_id = e.service_id
  join sb.service_queues as q on q.queue_id = s.service_queue_id
 where e.state in ('DI', 'ER')
   and not exists (
         select
           from sb.queue_messages as m
          where m.queue_name = q.name
            and m.conversation_handle = e.conversation_handle
            and m.status = 1)
 group by s.name, e.far_service, e.state, e.state_desc
 order by s.name collate "C", e.far_service collate "C", e.state`,
	},
	{
		name: "initiator-gone", severity: Warning,
		why: "The side that began the dialog was removed without a word (cleanup); nobody will ever end it from there.",
		query: `
select format(case count(*) when 1 then '%s conversation of service "%s" with "%s" has lost the side that began it.'
         else '%s conversations of service "%s" with "%s" have lost the side that began them.' end, count(*), s.name, e.far_service),
       format($mend$select sb.end_conversation(e.conversation_handle, cleanup => true) from sb.conversation_endpoints as e join sb.services as s on s.service_id = e.service_id where s.name = %L and e.far_service = %L and not e.is_initiator and e.state = 'CO' and not exists (select from sb.conversation_endpoints as o where o.conversation_handle = e.conversation_id);$mend$, s.name, e.far_service)
  from ` + endpoints + ` as e
  join sb.services as s on s.service_id = e.service_id
  left join lateral (
    select true as exists
      from sb.conversation_endpoints as i
     where i.conversation_handle = e.conversation_id
     limit 1) as o on true
 where not e.is_initiator
   and e.state = 'CO'
   and o.exists is null
   and (e.far_broker_instance = (select b.broker_instance::text from sb.broker as b)) is not false
 group by s.name, e.far_service
 order by s.name collate "C", e.far_service collate "C"`,
		adminOnly: true,
	},
	{
		name: "endpoints-many", severity: Advice,
		why: "Conversations are cheap, not free. Most often one side does not end what it has begun, or does not end when the other has.",
		query: `
select format('There are about %s conversation endpoints; most of the first 10000 are of service "%s".', n.endpoints, m.service),
       '-- sbactivator conversation list; whose side is not ended: select state_desc, far_service, count(*) from sb.conversation_endpoints group by 1, 2;'
  from (
    select sum(t.n_live_tup)
      from pg_stat_all_tables as t
     where t.schemaname = 'sb_internal'
       and t.relname = 'endpoint') as n (endpoints)
 cross join lateral (
   select s.name
     from ` + endpoints + ` as e
     join sb.services as s on s.service_id = e.service_id
    group by s.name
    order by count(*) desc
    limit 1) as m (service)
 where n.endpoints >= 100000`,
		adminOnly: true,
	},

	// ---------------------------------------------------------------------------------------------
	// Vacuum. Queues churn: what keeps dead rows costs more here than elsewhere.
	// ---------------------------------------------------------------------------------------------
	{
		name: "long-transaction", severity: Warning, by: "a member of that role, or of pg_signal_backend",
		why: "Vacuum keeps every row that an open transaction might still see: the tables of the queues grow until it ends. What it has received is kept from everybody else, too.",
		query: `
select format('Session %s of role "%s" (application "%s") has a transaction open %s.', a.pid, a.usename, a.application_name,
         coalesce('since ' || date_trunc('second', a.xact_start), format('for %s transactions', age(a.backend_xmin)))),
       format('select pg_terminate_backend(%s);', a.pid)
  from pg_stat_activity as a
 where a.datname = current_database()
   and a.pid <> pg_backend_pid()
   and coalesce(a.backend_xmin, a.backend_xid) is not null
   -- When a transaction of another role began is hidden without pg_read_all_stats; then judge by how much came after it.
   and (a.xact_start < clock_timestamp() - @patience::text::interval
     or a.xact_start is null and age(a.backend_xmin) > 1000000)
   and coalesce(a.backend_type <> 'autovacuum worker', true)
 order by a.xact_start, a.pid`,
	},
	{
		name: "prepared-transaction", severity: Warning, by: "the role that has prepared it",
		why: "Vacuum keeps every row that it might still see, it keeps its locks, and it survives restarts.",
		query: `
select format('Transaction "%s" of role "%s" is prepared since %s and neither committed nor rolled back.', p.gid, p.owner, date_trunc('second', p.prepared)),
       format('rollback prepared %L;  -- or commit prepared', p.gid)
  from pg_prepared_xacts as p
 where p.database = current_database()
   and p.prepared < clock_timestamp() - @patience::text::interval
 order by p.prepared`,
	},
	{
		name: "replication-slot", severity: Warning, by: "a role with REPLICATION",
		why: "A slot that nobody uses makes the server keep write-ahead log until the disk is full, and may keep rows from vacuum.",
		query: `
select format('Replication slot "%s" is used by nobody and keeps %s.', s.slot_name,
         case when s.xmin is not null or s.catalog_xmin is not null then 'dead rows and write-ahead log' else 'write-ahead log' end),
       format('select pg_drop_replication_slot(%L);', s.slot_name)
  from pg_replication_slots as s
 where not s.active
   and (s.restart_lsn is not null or s.xmin is not null or s.catalog_xmin is not null)
 order by s.slot_name`,
	},
	{
		name: "autovacuum-off", severity: Error, by: sbOwner,
		why: "The tables of the queues grow without limit, and receive gets slower with them.",
		query: `
select format('%s is off.', s.name), format('alter system reset %I; select pg_reload_conf();', s.name)
  from pg_settings as s
 where s.name in ('autovacuum', 'track_counts')
   and s.setting = 'off'
 union all
select format('Autovacuum is switched off for table %s.%s.', n.nspname, c.relname),
       format('alter table %I.%I reset (autovacuum_enabled);', n.nspname, c.relname)
  from pg_class as c
  join pg_namespace as n on n.oid = c.relnamespace
 where n.nspname in ('sb', 'sb_internal')
   and c.relkind = 'r'
   and exists (
         select
           from pg_options_to_table(c.reloptions) as o
          where o.option_name = 'autovacuum_enabled'
            and not o.option_value::boolean)`,
	},
	{
		name: "vacuum-behind", severity: Warning, by: sbOwner,
		why: "Dead rows slow receive down. Vacuum does not get to the table, or something keeps it from removing them.",
		query: `
select format('Table %s.%s has %s dead rows for %s live ones, and was vacuumed last %s.', t.schemaname, t.relname, t.n_dead_tup, t.n_live_tup,
         coalesce('at ' || date_trunc('second', greatest(t.last_vacuum, t.last_autovacuum)), 'never')),
       format('vacuum %I.%I;', t.schemaname, t.relname)
  from pg_stat_all_tables as t
 where t.schemaname in ('sb', 'sb_internal')
   and t.n_dead_tup > greatest(50000, t.n_live_tup)
   and coalesce(greatest(t.last_vacuum, t.last_autovacuum) < clock_timestamp() - @patience::text::interval, true)
 order by t.n_dead_tup desc`,
	},
}
