set local lock_timeout = '10s';

-- Everything a caller may name lives in sb; everything else in sb_internal, on which nobody but the
-- owner ever gets usage. sbactivator creates sb_internal first, for the version table.
create schema if not exists sb_internal;
create schema sb;
revoke all on schema sb, sb_internal from public;
comment on schema sb is
  'Service Broker: verbs (functions) and catalog (views). Roles get usage through sb.grant_….';
comment on schema sb_internal is
  'Tables, sequences and inner functions of sb. Usage is for the owner alone: inner functions trust their caller argument.';

create table sb_internal.meta (
  version bigint not null,
  name text not null,
  applied_at timestamptz not null default pg_catalog.now(),
  constraint meta_pkey primary key (version)
);
comment on table sb_internal.meta is
  'One row per applied migration, written in that migration''s own transaction, so that a dirty version can be decided.';

-- ---------------------------------------------------------------------------------------------
-- The catalog: what DDL verbs write and messaging verbs read.
-- ---------------------------------------------------------------------------------------------

create table sb_internal.broker (
  singleton boolean not null default true,
  broker_instance uuid not null default pg_catalog.gen_random_uuid(),
  is_broker_enabled boolean not null default true,
  is_honor_broker_priority_on boolean not null default false,
  system_names text not null default 'documented',
  is_validate_on_send boolean not null default false,
  poison_message_threshold integer not null default 5,
  priority_levels smallint[] not null default '{5}',
  admins name[] not null default '{}',
  constraint broker_pkey primary key (singleton),
  constraint broker_singleton_check check (singleton),
  constraint broker_system_names_check check (system_names in ('documented', 'sqlserver')),
  constraint broker_poison_message_threshold_check check (poison_message_threshold >= 1)
);
comment on table sb_internal.broker is 'The broker of this database: one row.';
comment on column sb_internal.broker.priority_levels is
  'Every priority an endpoint may ever have got, highest first: what receive has to search. Levels are only added.';
comment on column sb_internal.broker.admins is
  'Roles that may run every DDL verb, as the owner of sb may. Role names, not oids: a restore into a cluster without the role must not fail.';

create table sb_internal.message_type (
  message_type_id integer not null,
  name text collate "C" not null,
  sqlserver_name text collate "C",
  owner name not null,
  validation text not null,
  validator text,
  schema jsonb,
  constraint message_type_pkey primary key (message_type_id),
  constraint message_type_name_key unique (name),
  constraint message_type_validation_check check (validation in
    ('NONE', 'EMPTY', 'WELL_FORMED_XML', 'VALID_XML', 'WELL_FORMED_JSON', 'VALID_JSON'))
);
comment on table sb_internal.message_type is 'Message types; ids below 65536 are the system''s.';
comment on column sb_internal.message_type.sqlserver_name is
  'The name shown instead of name while the option system_names is sqlserver; system types only.';
comment on column sb_internal.message_type.validator is
  'Quoted schema.name of the function; text, because pg_upgrade refuses columns of type regprocedure.';
create sequence sb_internal.message_type_id as integer start 65536 owned by sb_internal.message_type.message_type_id;

create table sb_internal.contract (
  service_contract_id integer not null,
  name text collate "C" not null,
  sqlserver_name text collate "C",
  owner name not null,
  referencers name[] not null default '{}',
  constraint contract_pkey primary key (service_contract_id),
  constraint contract_name_key unique (name)
);
comment on table sb_internal.contract is 'Contracts; ids below 65536 are the system''s.';
comment on column sb_internal.contract.referencers is 'Access list: roles that may begin dialogs on the contract; public stands for everybody.';
create sequence sb_internal.service_contract_id as integer start 65536 owned by sb_internal.contract.service_contract_id;

create table sb_internal.contract_message (
  service_contract_id integer not null,
  message_type_name text collate "C" not null,
  message_type_id integer not null,
  validation text not null,
  is_sent_by_initiator boolean not null,
  is_sent_by_target boolean not null,
  constraint contract_message_pkey primary key (service_contract_id, message_type_name),
  constraint contract_message_service_contract_id_fkey foreign key (service_contract_id)
    references sb_internal.contract (service_contract_id) on delete cascade,
  constraint contract_message_message_type_id_fkey foreign key (message_type_id)
    references sb_internal.message_type (message_type_id)
);
comment on table sb_internal.contract_message is
  'Which side may send which message type. Type name and validation are repeated here (neither ids nor names change; alter_message_type rewrites validation) so that SEND decides with one probe.';
create index contract_message_message_type_id_idx on sb_internal.contract_message (message_type_id);

create table sb_internal.queue (
  queue_id integer not null,
  name text collate "C" not null,
  owner name not null,
  receivers name[] not null default '{}',
  is_enabled boolean not null default true,
  is_retention_enabled boolean not null default false,
  is_poison_message_handling_enabled boolean not null default true,
  activation_procedure text,
  max_readers integer,
  is_activation_enabled boolean not null default false,
  execute_as name,
  has_activation_event boolean not null default false,
  is_system boolean not null default false,
  constraint queue_pkey primary key (queue_id),
  constraint queue_name_key unique (name),
  constraint queue_max_readers_check check (max_readers between 0 and 32767)
);
comment on table sb_internal.queue is 'Queues. Messages of all queues share the table message.';
comment on column sb_internal.queue.is_enabled is
  'The switch as written. A queue whose poison limit is reached is off whatever it says: ask _queue_is_on.';
comment on column sb_internal.queue.receivers is 'Access list: roles that may receive; public stands for everybody.';
comment on column sb_internal.queue.has_activation_event is 'A QUEUE_ACTIVATION notification watches this queue.';
create sequence sb_internal.queue_id as integer start 65536 owned by sb_internal.queue.queue_id;

create table sb_internal.service (
  service_id integer not null,
  name text collate "C" not null,
  sqlserver_name text collate "C",
  owner name not null,
  senders name[] not null default '{}',
  queue_id integer not null,
  constraint service_pkey primary key (service_id),
  constraint service_name_key unique (name),
  constraint service_queue_id_fkey foreign key (queue_id) references sb_internal.queue (queue_id)
);
comment on table sb_internal.service is 'Services; ids below 65536 are the system''s.';
comment on column sb_internal.service.senders is
  'Access list: owners of initiating services that may send to this one; public stands for everybody.';
create index service_queue_id_idx on sb_internal.service (queue_id);
create sequence sb_internal.service_id as integer start 65536 owned by sb_internal.service.service_id;

create table sb_internal.service_status (
  service_id integer not null,
  queue_id integer not null,
  is_accepting boolean not null,
  is_queue_enabled boolean not null,
  is_retention_enabled boolean not null,
  is_poison_watched boolean not null,
  has_activation_event boolean not null,
  queue_owner name not null,
  receivers name[] not null,
  constraint service_status_pkey primary key (service_id),
  constraint service_status_service_id_fkey foreign key (service_id)
    references sb_internal.service (service_id) on delete cascade
);
comment on table sb_internal.service_status is
  'What SEND and RECEIVE have to know of a service, its queue and the broker, in one row: one probe instead of three. Written by triggers on those tables only (_refresh_service_status).';
comment on column sb_internal.service_status.is_accepting is 'Broker and queue are switched on.';

create table sb_internal.service_contract (
  service_id integer not null,
  service_contract_id integer not null,
  constraint service_contract_pkey primary key (service_id, service_contract_id),
  constraint service_contract_service_id_fkey foreign key (service_id)
    references sb_internal.service (service_id) on delete cascade,
  constraint service_contract_service_contract_id_fkey foreign key (service_contract_id)
    references sb_internal.contract (service_contract_id)
);
comment on table sb_internal.service_contract is 'The contracts a service accepts as target.';
create index service_contract_service_contract_id_idx on sb_internal.service_contract (service_contract_id);

create table sb_internal.route (
  route_id integer not null,
  name text collate "C" not null,
  owner name not null,
  remote_service_name text collate "C",
  broker_instance text collate "C",
  lifetime timestamptz,
  address text collate "C" not null,
  mirror_address text collate "C",
  constraint route_pkey primary key (route_id),
  constraint route_name_key unique (name)
);
comment on table sb_internal.route is 'Routes; null service or instance is a wildcard, lifetime is when the route expires.';
create sequence sb_internal.route_id as integer start 65536 owned by sb_internal.route.route_id;

create table sb_internal.conversation_priority (
  priority_id integer not null,
  name text collate "C" not null,
  service_contract_id integer,
  local_service_id integer,
  remote_service_name text collate "C",
  priority smallint not null,
  constraint conversation_priority_pkey primary key (priority_id),
  constraint conversation_priority_name_key unique (name),
  constraint conversation_priority_scope_key unique (service_contract_id, local_service_id, remote_service_name),
  constraint conversation_priority_service_contract_id_fkey foreign key (service_contract_id)
    references sb_internal.contract (service_contract_id),
  constraint conversation_priority_local_service_id_fkey foreign key (local_service_id)
    references sb_internal.service (service_id),
  constraint conversation_priority_priority_check check (priority between 1 and 10)
);
comment on table sb_internal.conversation_priority is 'Broker priorities; null is ANY.';
create sequence sb_internal.priority_id as integer start 65536 owned by sb_internal.conversation_priority.priority_id;

create table sb_internal.event_notification (
  event_notification_id integer not null,
  name text collate "C" not null,
  queue_id integer not null,
  event text not null,
  to_service text collate "C" not null,
  broker_instance text collate "C",
  conversation_handle uuid,
  constraint event_notification_pkey primary key (event_notification_id),
  constraint event_notification_name_key unique (queue_id, name),
  constraint event_notification_queue_id_fkey foreign key (queue_id)
    references sb_internal.queue (queue_id) on delete cascade,
  constraint event_notification_event_check check (event in ('QUEUE_ACTIVATION', 'BROKER_QUEUE_DISABLED'))
);
comment on table sb_internal.event_notification is
  'Event notifications of queues. Each owns one long-lived dialog from the event notification service, begun at its first event.';

create sequence sb_internal.event_notification_id as integer
  owned by sb_internal.event_notification.event_notification_id;

create table sb_internal.queue_monitor (
  queue_id integer not null,
  state text not null default 'INACTIVE',
  last_empty_rowset_time timestamptz,
  last_activated_time timestamptz,
  constraint queue_monitor_pkey primary key (queue_id),
  constraint queue_monitor_queue_id_fkey foreign key (queue_id)
    references sb_internal.queue (queue_id) on delete cascade,
  constraint queue_monitor_state_check check (state in ('INACTIVE', 'NOTIFIED', 'RECEIVES_OCCURRING'))
);
comment on table sb_internal.queue_monitor is
  'State of activation per watched queue: written by send and receive for queues with a QUEUE_ACTIVATION notification, by the activator for queues with activation.';

create table sb_internal.activated_task (
  pid integer not null,
  queue_id integer not null,
  procedure_name text not null,
  execute_as name,
  activator text not null,
  started_at timestamptz not null,
  constraint activated_task_pkey primary key (pid),
  constraint activated_task_queue_id_fkey foreign key (queue_id)
    references sb_internal.queue (queue_id) on delete cascade
);
comment on table sb_internal.activated_task is
  'What activators run right now, one row per backend; rows of backends that are gone are ignored by the view and removed by maintain.';

-- ---------------------------------------------------------------------------------------------
-- Conversations. Each side (endpoint, group, due rows, counter, cursor, transmission rows, removal
-- of messages addressed to it) is written by that side alone; the other side only inserts.
-- Lock order: group row, endpoint row, counter row; several of a kind in id order. SEND locks the counter
-- only, and before it, for the first message, the endpoint.
-- ---------------------------------------------------------------------------------------------

create table sb.conversation_group (
  conversation_group_id uuid not null,
  service_id integer not null,
  constraint conversation_group_pkey primary key (conversation_group_id)
);
comment on table sb.conversation_group is
  'Conversation groups; the row is the group lock. In schema sb, with no privilege granted, because foreign keys of state tables have to name it.';

create table sb_internal.endpoint (
  conversation_handle uuid not null,
  peer_handle uuid not null,
  conversation_group_id uuid not null,
  lifetime timestamptz,
  service_id integer not null,
  service_contract_id integer not null,
  priority smallint not null,
  is_initiator boolean not null,
  has_counter boolean not null default false,
  state text not null default 'CO',
  far_service text collate "C" not null,
  far_broker_instance text collate "C",
  constraint endpoint_pkey primary key (conversation_handle),
  constraint endpoint_service_id_fkey foreign key (service_id) references sb_internal.service (service_id),
  constraint endpoint_state_check check (state in ('CO', 'DI', 'DO', 'ER'))
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
comment on table sb_internal.endpoint is
  'One row per side of a dialog. Kept static: what changes with each message lives in send_counter and receive_cursor.';
comment on column sb_internal.endpoint.state is
  'As this side itself wrote it. DI and ER may also follow from a message in the queue or the clock: ask _effective_state.';
comment on column sb_internal.endpoint.has_counter is
  'The side has its row in send_counter: an initiator from the start, a target from its first SEND. Writing it makes a repeatable read transaction that cannot see the row fail (40001) instead of counting from zero again.';
comment on column sb_internal.endpoint.peer_handle is
  'The other side''s handle, fixed when the dialog begins. The initiator''s handle is the conversation_id.';
comment on column sb_internal.endpoint.conversation_group_id is
  'The group; changed by move_conversation only. A side in DO has left its group and keeps the id for information.';
comment on constraint endpoint_service_id_fkey on sb_internal.endpoint is
  'The one foreign key of the messaging tables: keeps drop_service from racing the first SEND to it.';
create index endpoint_conversation_group_id_idx on sb_internal.endpoint (conversation_group_id);

create table sb_internal.send_counter (
  conversation_handle uuid not null,
  message_sequence_number bigint not null,
  is_waiting boolean not null default false,
  constraint send_counter_pkey primary key (conversation_handle, message_sequence_number)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
comment on table sb_internal.send_counter is
  'Last sequence number a side has used, -1 for none. The row SEND locks. The number is in the index on purpose: read from its top end, the current row is found at once however many dead versions an old snapshot keeps.';

comment on column sb_internal.send_counter.is_waiting is
  'This side has rows in the transmission queue: later sends queue up behind them. Here, because SEND may not lock the endpoint after the counter.';

create table sb_internal.receive_cursor (
  conversation_handle uuid not null,
  message_sequence_number bigint not null,
  constraint receive_cursor_pkey primary key (conversation_handle, message_sequence_number)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
comment on table sb_internal.receive_cursor is
  'Lower bound of the sequence numbers still to receive, written every 64th message by the receiving side: keeps the probe for a conversation''s first message off its dead rows.';

create table sb_internal.due (
  conversation_handle uuid not null,
  is_lifetime boolean not null,
  conversation_group_id uuid not null,
  queue_id integer not null,
  priority smallint not null,
  due_at timestamptz not null,
  constraint due_pkey primary key (conversation_handle, is_lifetime)
);
comment on table sb_internal.due is
  'Timers and lifetimes: a row whose time has passed is a DialogTimer or an Error -8489 of its conversation. Nothing fires it.';
create index due_queue_id_idx on sb_internal.due (queue_id, priority, due_at);
create index due_conversation_group_id_idx on sb_internal.due (conversation_group_id);

create table sb_internal.message (
  queuing_order bigint not null,
  message_sequence_number bigint not null,
  message_enqueue_time timestamptz not null,
  queue_id integer not null,
  message_type_id integer not null,
  conversation_handle uuid not null,
  conversation_group_id uuid not null,
  priority smallint not null,
  message_body bytea
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1,
  autovacuum_vacuum_cost_delay = 0);
comment on table sb_internal.message is
  'Messages ready to be received, of all queues. No foreign keys: the sending side may only insert.';
comment on column sb_internal.message.conversation_group_id is
  'Hint for searching. The truth is handle, endpoint, group; a message that arrives during a move may carry the old group.';
comment on column sb_internal.message.message_sequence_number is
  'Counted per sending side under its endpoint lock: contiguous, in commit order. -1 for Error, which is thereby first.';
comment on column sb_internal.message.queuing_order is
  'From one sequence, taken under the sender''s lock: in commit order within a conversation, not across.';
create index message_conversation_handle_idx on sb_internal.message (conversation_handle, message_sequence_number);
create index message_queue_id_idx on sb_internal.message (queue_id, priority, queuing_order);
create index message_conversation_group_id_idx on sb_internal.message
  (queue_id, priority, conversation_group_id, queuing_order);
create index message_control_idx on sb_internal.message (conversation_handle) where message_type_id in (1, 2);
comment on index sb_internal.message_control_idx is
  'EndDialog and Error: "the peer has ended" is the fact that one of them is here.';
create sequence sb_internal.queuing_order as bigint cache 1 owned by sb_internal.message.queuing_order;

create table sb_internal.retained_message (
  like sb_internal.message,
  status smallint not null,
  constraint retained_message_status_check check (status in (0, 3))
);
comment on table sb_internal.retained_message is
  'Of queues with retention: messages received (status 0) and copies of messages sent (status 3), until the conversation ends.';
create index retained_message_conversation_handle_idx on sb_internal.retained_message
  (conversation_handle, queuing_order);

create table sb_internal.transmission (
  conversation_handle uuid not null,
  message_sequence_number bigint not null,
  message_type_id integer not null,
  enqueue_time timestamptz not null,
  to_service_name text collate "C" not null,
  message_body bytea,
  constraint transmission_pkey primary key (conversation_handle, message_sequence_number)
);
comment on table sb_internal.transmission is
  'Transmission queue: messages that could not go straight into their queue. Written by the sending side only, moved on under its endpoint lock.';
create index transmission_to_service_name_idx on sb_internal.transmission (to_service_name, conversation_handle);
comment on index sb_internal.transmission_to_service_name_idx is
  'Lets deliver step from service to service and leave out those that cannot take anything.';

create type sb_internal.unsettled as (
  conversation_handles uuid[],
  message_type text,
  bodies bytea[],
  is_text boolean,
  validator text,
  validation text
);
comment on type sb_internal.unsettled is 'A SEND that waits for the verdict of a validator function.';

create table sb_internal.group_backoff (
  conversation_group_id uuid not null,
  not_before timestamptz not null,
  failures integer not null,
  constraint group_backoff_pkey primary key (conversation_group_id)
);
comment on table sb_internal.group_backoff is
  'Groups whose handler failed: receive without for_… leaves them alone until not_before. Written by activators in transactions of their own.';

create table sb_internal.state (
  conversation_group_id uuid not null,
  state jsonb not null,
  constraint state_pkey primary key (conversation_group_id)
);
comment on table sb_internal.state is
  'The built-in state table, one jsonb per conversation group; the row goes with its group.';

insert into sb_internal.meta (version, name) values (1, 'schema');
