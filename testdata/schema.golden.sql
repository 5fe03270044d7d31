-- What the migrations make, from the catalogs; go test ./internal/schematest -update writes this file.

create schema sb;
comment on schema sb is
  'Service Broker: verbs (functions) and catalog (views). Roles get usage through sb.grant_….';

create table sb.conversation_group (
  conversation_group_id uuid not null,
  service_id integer not null,
  constraint conversation_group_pkey PRIMARY KEY (conversation_group_id)
);
comment on table sb.conversation_group is
  'Conversation groups; the row is the group lock. In schema sb, with no privilege granted, because foreign keys of state tables have to name it.';

create schema sb_internal;
comment on schema sb_internal is
  'Tables, sequences and inner functions of sb. Usage is for the owner alone: inner functions trust their caller argument.';

create table sb_internal.activated_task (
  pid integer not null,
  queue_id integer not null,
  procedure_name text not null,
  execute_as name,
  activator text not null,
  started_at timestamp with time zone not null,
  constraint activated_task_pkey PRIMARY KEY (pid),
  constraint activated_task_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES sb_internal.queue(queue_id) ON DELETE CASCADE
);
comment on table sb_internal.activated_task is
  'What activators run right now, one row per backend; rows of backends that are gone are ignored by the view and removed by maintain.';

create table sb_internal.broker (
  singleton boolean not null default true,
  broker_instance uuid not null default gen_random_uuid(),
  is_broker_enabled boolean not null default true,
  is_honor_broker_priority_on boolean not null default false,
  system_names text not null default 'documented'::text,
  is_validate_on_send boolean not null default false,
  poison_message_threshold integer not null default 5,
  priority_levels smallint[] not null default '{5}'::smallint[],
  admins name[] not null default '{}'::name[],
  constraint broker_pkey PRIMARY KEY (singleton),
  constraint broker_poison_message_threshold_check CHECK ((poison_message_threshold >= 1)),
  constraint broker_singleton_check CHECK (singleton),
  constraint broker_system_names_check CHECK ((system_names = ANY (ARRAY['documented'::text, 'sqlserver'::text])))
);
CREATE TRIGGER broker_status AFTER INSERT OR UPDATE ON sb_internal.broker FOR EACH ROW EXECUTE FUNCTION sb_internal._refresh_service_status();
comment on column sb_internal.broker.admins is
  'Roles that may run every DDL verb, as the owner of sb may. Role names, not oids: a restore into a cluster without the role must not fail.';
comment on column sb_internal.broker.priority_levels is
  'Every priority an endpoint may ever have got, highest first: what receive has to search. Levels are only added.';
comment on table sb_internal.broker is
  'The broker of this database: one row.';

create table sb_internal.contract (
  service_contract_id integer not null,
  name text collate "C" not null,
  sqlserver_name text collate "C",
  owner name not null,
  referencers name[] not null default '{}'::name[],
  constraint contract_name_key UNIQUE (name),
  constraint contract_pkey PRIMARY KEY (service_contract_id)
);
comment on column sb_internal.contract.referencers is
  'Access list: roles that may begin dialogs on the contract; public stands for everybody.';
comment on table sb_internal.contract is
  'Contracts; ids below 65536 are the system''s.';

create table sb_internal.contract_message (
  service_contract_id integer not null,
  message_type_name text collate "C" not null,
  message_type_id integer not null,
  validation text not null,
  is_sent_by_initiator boolean not null,
  is_sent_by_target boolean not null,
  constraint contract_message_message_type_id_fkey FOREIGN KEY (message_type_id) REFERENCES sb_internal.message_type(message_type_id),
  constraint contract_message_pkey PRIMARY KEY (service_contract_id, message_type_name),
  constraint contract_message_service_contract_id_fkey FOREIGN KEY (service_contract_id) REFERENCES sb_internal.contract(service_contract_id) ON DELETE CASCADE
);
CREATE INDEX contract_message_message_type_id_idx ON sb_internal.contract_message USING btree (message_type_id);
comment on table sb_internal.contract_message is
  'Which side may send which message type. Type name and validation are repeated here (neither ids nor names change; alter_message_type rewrites validation) so that SEND decides with one probe.';

create table sb_internal.conversation_priority (
  priority_id integer not null,
  name text collate "C" not null,
  service_contract_id integer,
  local_service_id integer,
  remote_service_name text collate "C",
  priority smallint not null,
  constraint conversation_priority_local_service_id_fkey FOREIGN KEY (local_service_id) REFERENCES sb_internal.service(service_id),
  constraint conversation_priority_name_key UNIQUE (name),
  constraint conversation_priority_pkey PRIMARY KEY (priority_id),
  constraint conversation_priority_priority_check CHECK (((priority >= 1) AND (priority <= 10))),
  constraint conversation_priority_scope_key UNIQUE (service_contract_id, local_service_id, remote_service_name),
  constraint conversation_priority_service_contract_id_fkey FOREIGN KEY (service_contract_id) REFERENCES sb_internal.contract(service_contract_id)
);
comment on table sb_internal.conversation_priority is
  'Broker priorities; null is ANY.';

create table sb_internal.due (
  conversation_handle uuid not null,
  is_lifetime boolean not null,
  conversation_group_id uuid not null,
  queue_id integer not null,
  priority smallint not null,
  due_at timestamp with time zone not null,
  constraint due_pkey PRIMARY KEY (conversation_handle, is_lifetime)
);
CREATE INDEX due_conversation_group_id_idx ON sb_internal.due USING btree (conversation_group_id);
CREATE INDEX due_queue_id_idx ON sb_internal.due USING btree (queue_id, priority, due_at);
comment on table sb_internal.due is
  'Timers and lifetimes: a row whose time has passed is a DialogTimer or an Error -8489 of its conversation. Nothing fires it.';

create table sb_internal.endpoint (
  conversation_handle uuid not null,
  peer_handle uuid not null,
  conversation_group_id uuid not null,
  lifetime timestamp with time zone,
  service_id integer not null,
  service_contract_id integer not null,
  priority smallint not null,
  is_initiator boolean not null,
  has_counter boolean not null default false,
  state text not null default 'CO'::text,
  far_service text collate "C" not null,
  far_broker_instance text collate "C",
  constraint endpoint_pkey PRIMARY KEY (conversation_handle)
) with (fillfactor=90, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05);
CREATE INDEX endpoint_conversation_group_id_idx ON sb_internal.endpoint USING btree (conversation_group_id);
comment on column sb_internal.endpoint.conversation_group_id is
  'The group; changed by move_conversation only. A side in DO has left its group and keeps the id for information.';
comment on column sb_internal.endpoint.has_counter is
  'Written with the first row in send_counter unless the dialog began in the same transaction: makes a repeatable read transaction that cannot see that row fail (40001) instead of counting from zero again. Says nothing else.';
comment on column sb_internal.endpoint.peer_handle is
  'The other side''s handle, fixed when the dialog begins. The initiator''s handle is the conversation_id.';
comment on column sb_internal.endpoint.state is
  'As this side itself wrote it. DI and ER may also follow from a message in the queue or the clock: ask _effective_state.';
comment on table sb_internal.endpoint is
  'One row per side of a dialog. Kept static: what changes with each message lives in send_counter and receive_cursor.';

create table sb_internal.event_notification (
  event_notification_id integer not null,
  name text collate "C" not null,
  queue_id integer not null,
  event text not null,
  to_service text collate "C" not null,
  broker_instance text collate "C",
  conversation_handle uuid,
  constraint event_notification_event_check CHECK ((event = ANY (ARRAY['QUEUE_ACTIVATION'::text, 'BROKER_QUEUE_DISABLED'::text]))),
  constraint event_notification_name_key UNIQUE (queue_id, name),
  constraint event_notification_pkey PRIMARY KEY (event_notification_id),
  constraint event_notification_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES sb_internal.queue(queue_id) ON DELETE CASCADE
);
comment on table sb_internal.event_notification is
  'Event notifications of queues. Each owns one long-lived dialog from the event notification service, begun at its first event.';

create sequence sb_internal.event_notification_id as integer increment 1 minvalue 1 maxvalue 2147483647 start 1 cache 1 owned by sb_internal.event_notification.event_notification_id;

create table sb_internal.group_backoff (
  conversation_group_id uuid not null,
  not_before timestamp with time zone not null,
  failures integer not null,
  constraint group_backoff_pkey PRIMARY KEY (conversation_group_id)
);
comment on table sb_internal.group_backoff is
  'Groups whose handler failed: receive without for_… leaves them alone until not_before. Written by activators in transactions of their own.';

create table sb_internal.loose_end (
  loose_end_id bigint not null,
  conversation_handle uuid not null,
  conversation_group_id uuid not null,
  constraint loose_end_pkey PRIMARY KEY (loose_end_id)
);
comment on table sb_internal.loose_end is
  'Conversations that left their group, by END or MOVE, in a transaction above read committed. What its snapshot did not have of them, and whether the group is empty, maintain sees to (_tie_loose_ends).';

create sequence sb_internal.loose_end_loose_end_id_seq as bigint increment 1 minvalue 1 maxvalue 9223372036854775807 start 1 cache 1;

create table sb_internal.message (
  queuing_order bigint not null,
  message_sequence_number bigint not null,
  message_enqueue_time timestamp with time zone not null,
  queue_id integer not null,
  message_type_id integer not null,
  conversation_handle uuid not null,
  conversation_group_id uuid not null,
  priority smallint not null,
  message_body bytea
) with (autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_insert_scale_factor=0.2, autovacuum_analyze_scale_factor=0.1, autovacuum_vacuum_cost_delay=0);
CREATE INDEX message_control_idx ON sb_internal.message USING btree (conversation_handle) WHERE (message_type_id = ANY (ARRAY[1, 2]));
CREATE INDEX message_conversation_group_id_idx ON sb_internal.message USING btree (queue_id, priority, conversation_group_id, queuing_order);
CREATE INDEX message_conversation_handle_idx ON sb_internal.message USING btree (conversation_handle, message_sequence_number);
CREATE INDEX message_queue_id_idx ON sb_internal.message USING btree (queue_id, priority, queuing_order);
comment on column sb_internal.message.conversation_group_id is
  'Hint for searching. The truth is handle, endpoint, group; a message that arrives during a move may carry the old group.';
comment on column sb_internal.message.message_sequence_number is
  'Counted per sending side under its endpoint lock: contiguous, in commit order. -1 for Error, which is thereby first.';
comment on column sb_internal.message.queuing_order is
  'From one sequence, taken under the sender''s lock: in commit order within a conversation, not across.';
comment on index sb_internal.message_control_idx is
  'EndDialog and Error: "the peer has ended" is the fact that one of them is here.';
comment on table sb_internal.message is
  'Messages ready to be received, of all queues. No foreign keys: the sending side may only insert.';

create table sb_internal.message_type (
  message_type_id integer not null,
  name text collate "C" not null,
  sqlserver_name text collate "C",
  owner name not null,
  validation text not null,
  validator text,
  schema jsonb,
  constraint message_type_name_key UNIQUE (name),
  constraint message_type_pkey PRIMARY KEY (message_type_id),
  constraint message_type_validation_check CHECK ((validation = ANY (ARRAY['NONE'::text, 'EMPTY'::text, 'WELL_FORMED_XML'::text, 'VALID_XML'::text, 'WELL_FORMED_JSON'::text, 'VALID_JSON'::text])))
);
comment on column sb_internal.message_type.sqlserver_name is
  'The name shown instead of name while the option system_names is sqlserver; system types only.';
comment on column sb_internal.message_type.validator is
  'Quoted schema.name of the function; text, because pg_upgrade refuses columns of type regprocedure.';
comment on table sb_internal.message_type is
  'Message types; ids below 65536 are the system''s.';

create sequence sb_internal.message_type_id as integer increment 1 minvalue 1 maxvalue 2147483647 start 65536 cache 1 owned by sb_internal.message_type.message_type_id;

create table sb_internal.meta (
  version bigint not null,
  name text not null,
  applied_at timestamp with time zone not null default now(),
  constraint meta_pkey PRIMARY KEY (version)
);
comment on table sb_internal.meta is
  'One row per applied migration, written in that migration''s own transaction, so that a dirty version can be decided.';

create sequence sb_internal.priority_id as integer increment 1 minvalue 1 maxvalue 2147483647 start 65536 cache 1 owned by sb_internal.conversation_priority.priority_id;

create table sb_internal.queue (
  queue_id integer not null,
  name text collate "C" not null,
  owner name not null,
  receivers name[] not null default '{}'::name[],
  is_enabled boolean not null default true,
  is_retention_enabled boolean not null default false,
  is_poison_message_handling_enabled boolean not null default true,
  activation_procedure text,
  max_readers integer,
  is_activation_enabled boolean not null default false,
  execute_as name,
  has_activation_event boolean not null default false,
  is_system boolean not null default false,
  is_poison_disabled boolean not null default false,
  constraint queue_max_readers_check CHECK (((max_readers >= 0) AND (max_readers <= 32767))),
  constraint queue_name_key UNIQUE (name),
  constraint queue_pkey PRIMARY KEY (queue_id)
);
CREATE TRIGGER queue_status AFTER UPDATE ON sb_internal.queue FOR EACH ROW EXECUTE FUNCTION sb_internal._refresh_service_status();
comment on column sb_internal.queue.has_activation_event is
  'A QUEUE_ACTIVATION notification watches this queue.';
comment on column sb_internal.queue.is_enabled is
  'The switch as written. A queue whose poison limit is reached is off whatever it says: ask _queue_is_on.';
comment on column sb_internal.queue.is_poison_disabled is
  'Poison message handling has switched the queue off (is_enabled), not somebody; until it is switched on again.';
comment on column sb_internal.queue.receivers is
  'Access list: roles that may receive; public stands for everybody.';
comment on table sb_internal.queue is
  'Queues. Messages of all queues share the table message.';

create sequence sb_internal.queue_2_hint_5 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_0 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_1 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_10 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_11 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_12 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_13 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_14 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_15 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_2 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_3 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_4 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_5 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_6 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_7 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_8 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_9 as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_alarm as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_poison_position as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_search as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_2_stamp as bigint increment 1 minvalue 0 maxvalue 9223372036854775807 start 0 cache 1;

create sequence sb_internal.queue_id as integer increment 1 minvalue 1 maxvalue 2147483647 start 65536 cache 1 owned by sb_internal.queue.queue_id;

create table sb_internal.queue_monitor (
  queue_id integer not null,
  state text not null default 'INACTIVE'::text,
  last_empty_rowset_time timestamp with time zone,
  last_activated_time timestamp with time zone,
  constraint queue_monitor_pkey PRIMARY KEY (queue_id),
  constraint queue_monitor_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES sb_internal.queue(queue_id) ON DELETE CASCADE,
  constraint queue_monitor_state_check CHECK ((state = ANY (ARRAY['INACTIVE'::text, 'NOTIFIED'::text, 'RECEIVES_OCCURRING'::text])))
);
comment on table sb_internal.queue_monitor is
  'State of activation per watched queue: written by send and receive for queues with a QUEUE_ACTIVATION notification, by the activator for queues with activation.';

create sequence sb_internal.queuing_order as bigint increment 1 minvalue 1 maxvalue 9223372036854775807 start 1 cache 1 owned by sb_internal.message.queuing_order;

create table sb_internal.receive_cursor (
  conversation_handle uuid not null,
  message_sequence_number bigint not null,
  constraint receive_cursor_pkey PRIMARY KEY (conversation_handle, message_sequence_number)
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.02);
comment on table sb_internal.receive_cursor is
  'Lower bound of the sequence numbers still to receive, written every 64th message by the receiving side: keeps the probe for a conversation''s first message off its dead rows.';

create table sb_internal.retained_message (
  queuing_order bigint not null,
  message_sequence_number bigint not null,
  message_enqueue_time timestamp with time zone not null,
  queue_id integer not null,
  message_type_id integer not null,
  conversation_handle uuid not null,
  conversation_group_id uuid not null,
  priority smallint not null,
  message_body bytea,
  status smallint not null,
  constraint retained_message_status_check CHECK ((status = ANY (ARRAY[0, 3])))
);
CREATE INDEX retained_message_conversation_handle_idx ON sb_internal.retained_message USING btree (conversation_handle, queuing_order);
comment on table sb_internal.retained_message is
  'Of queues with retention: messages received (status 0) and copies of messages sent (status 3), until the conversation ends.';

create table sb_internal.route (
  route_id integer not null,
  name text collate "C" not null,
  owner name not null,
  remote_service_name text collate "C",
  broker_instance text collate "C",
  lifetime timestamp with time zone,
  address text collate "C" not null,
  mirror_address text collate "C",
  constraint route_name_key UNIQUE (name),
  constraint route_pkey PRIMARY KEY (route_id)
);
CREATE TRIGGER route_status AFTER INSERT OR DELETE OR UPDATE ON sb_internal.route FOR EACH ROW EXECUTE FUNCTION sb_internal._refresh_service_status();
comment on table sb_internal.route is
  'Routes; null service or instance is a wildcard, lifetime is when the route expires.';

create sequence sb_internal.route_id as integer increment 1 minvalue 1 maxvalue 2147483647 start 65536 cache 1 owned by sb_internal.route.route_id;

create table sb_internal.send_counter (
  conversation_handle uuid not null,
  message_sequence_number bigint not null,
  is_waiting boolean not null default false,
  constraint send_counter_pkey PRIMARY KEY (conversation_handle, message_sequence_number)
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.02);
comment on column sb_internal.send_counter.is_waiting is
  'This side has rows in the transmission queue: later sends queue up behind them. Here, because SEND may not lock the endpoint after the counter.';
comment on table sb_internal.send_counter is
  'Last sequence number a side has used, -1 for none. The row SEND locks. The number is in the index on purpose: read from its top end, the current row is found at once however many dead versions an old snapshot keeps.';

create table sb_internal.service (
  service_id integer not null,
  name text collate "C" not null,
  sqlserver_name text collate "C",
  owner name not null,
  senders name[] not null default '{}'::name[],
  queue_id integer not null,
  constraint service_name_key UNIQUE (name),
  constraint service_pkey PRIMARY KEY (service_id),
  constraint service_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES sb_internal.queue(queue_id)
);
CREATE INDEX service_queue_id_idx ON sb_internal.service USING btree (queue_id);
CREATE TRIGGER service_status AFTER INSERT OR UPDATE ON sb_internal.service FOR EACH ROW EXECUTE FUNCTION sb_internal._refresh_service_status();
comment on column sb_internal.service.senders is
  'Access list: owners of initiating services that may send to this one; public stands for everybody.';
comment on table sb_internal.service is
  'Services; ids below 65536 are the system''s.';

create table sb_internal.service_contract (
  service_id integer not null,
  service_contract_id integer not null,
  constraint service_contract_pkey PRIMARY KEY (service_id, service_contract_id),
  constraint service_contract_service_contract_id_fkey FOREIGN KEY (service_contract_id) REFERENCES sb_internal.contract(service_contract_id),
  constraint service_contract_service_id_fkey FOREIGN KEY (service_id) REFERENCES sb_internal.service(service_id) ON DELETE CASCADE
);
CREATE INDEX service_contract_service_contract_id_idx ON sb_internal.service_contract USING btree (service_contract_id);
CREATE TRIGGER service_contract_status AFTER INSERT OR DELETE ON sb_internal.service_contract FOR EACH ROW EXECUTE FUNCTION sb_internal._refresh_service_status();
comment on table sb_internal.service_contract is
  'The contracts a service accepts as target.';

create sequence sb_internal.service_contract_id as integer increment 1 minvalue 1 maxvalue 2147483647 start 65536 cache 1 owned by sb_internal.contract.service_contract_id;

create sequence sb_internal.service_id as integer increment 1 minvalue 1 maxvalue 2147483647 start 65536 cache 1 owned by sb_internal.service.service_id;

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
  service_name text collate "C" not null,
  service_owner name not null,
  senders name[] not null,
  contracts integer[] not null,
  broker_instance uuid not null,
  has_priorities boolean not null,
  is_local_only boolean not null,
  constraint service_status_pkey PRIMARY KEY (service_id),
  constraint service_status_service_id_fkey FOREIGN KEY (service_id) REFERENCES sb_internal.service(service_id) ON DELETE CASCADE,
  constraint service_status_service_name_key UNIQUE (service_name)
);
comment on column sb_internal.service_status.contracts is
  'Ids of the contracts that the service accepts as a target.';
comment on column sb_internal.service_status.has_priorities is
  'There is a conversation priority but 5.';
comment on column sb_internal.service_status.is_accepting is
  'Broker and queue are switched on.';
comment on column sb_internal.service_status.is_local_only is
  'All routes say LOCAL, and for everything: where a dialog goes need not be looked up.';
comment on table sb_internal.service_status is
  'What begin_dialog, SEND and RECEIVE have to know of a service, its queue, the broker and the routes, in one row: one probe instead of many. Written by triggers on those tables only (_refresh_service_status).';

create table sb_internal.state (
  conversation_group_id uuid not null,
  state jsonb not null,
  constraint state_pkey PRIMARY KEY (conversation_group_id)
);
comment on table sb_internal.state is
  'The built-in state table, one jsonb per conversation group; the row goes with its group.';

create table sb_internal.transmission (
  conversation_handle uuid not null,
  message_sequence_number bigint not null,
  message_type_id integer not null,
  enqueue_time timestamp with time zone not null,
  to_service_name text collate "C" not null,
  message_body bytea,
  constraint transmission_pkey PRIMARY KEY (conversation_handle, message_sequence_number)
);
CREATE INDEX transmission_to_service_name_idx ON sb_internal.transmission USING btree (to_service_name, conversation_handle);
comment on index sb_internal.transmission_to_service_name_idx is
  'Lets deliver step from service to service and leave out those that cannot take anything.';
comment on table sb_internal.transmission is
  'Transmission queue: messages that could not go straight into their queue. Written by the sending side only, moved on under its endpoint lock.';

create type sb_internal.unsettled as (
  conversation_handles uuid[],
  message_type text,
  bodies bytea[],
  is_text boolean,
  validator text,
  validation text
);
comment on type sb_internal.unsettled is
  'A SEND that waits for the verdict of a validator function.';
