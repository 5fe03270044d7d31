package sbroker

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
)

// The DDL verbs need an admin of sb (GrantAdmin) or, to alter and drop, the owner of the object. In the
// structs that create something the zero value of a field is its default; in those that alter
// something, a nil field leaves the setting as it is. Go 1.26 writes pointers in place: new(false).

// DropOptions is the last argument of every Drop.
type DropOptions struct {
	// IfExists makes dropping what does not exist a success.
	IfExists bool
}

// Validation says which bodies a message type accepts.
type Validation string

// The validations.
const (
	ValidationNone           Validation = "NONE"            // any body or none; the default
	ValidationEmpty          Validation = "EMPTY"           // no body
	ValidationWellFormedXML  Validation = "WELL_FORMED_XML" // an XML document or fragment
	ValidationValidXML       Validation = "VALID_XML"       // XML that Validator accepts
	ValidationWellFormedJSON Validation = "WELL_FORMED_JSON"
	ValidationValidJSON      Validation = "VALID_JSON" // JSON that Validator or Schema accepts
)

// MessageType says what CreateMessageType creates.
type MessageType struct {
	Name       MessageTypeName
	Validation Validation
	// Validator is the signature of a function, schema.name(xml) or schema.name(jsonb), that returns
	// boolean and runs with the rights of whoever sends.
	Validator string
	// Schema is a JSON schema for ValidationValidJSON, instead of Validator.
	Schema      json.RawMessage
	IfNotExists bool
}

// CreateMessageType creates a message type.
func (b *Broker) CreateMessageType(ctx context.Context, t MessageType) error {
	return b.exec(ctx, "create_message_type", `
select sb.create_message_type(
  name => @name::text,
  validation => @validation::text,
  validator => @validator::text::regprocedure,
  schema => @schema::text::jsonb,
  if_not_exists => @if_not_exists::boolean)`,
		args{
			"name":          string(t.Name),
			"validation":    string(cmp.Or(t.Validation, ValidationNone)),
			"validator":     orNull(t.Validator),
			"schema":        orNull(string(t.Schema)),
			"if_not_exists": t.IfNotExists,
		})
}

// MessageTypeChanges says what AlterMessageType changes. ValidationNone clears a validator and a schema.
type MessageTypeChanges struct {
	Validation *Validation
	Validator  *string
	Schema     json.RawMessage
}

// AlterMessageType changes how later messages are validated.
func (b *Broker) AlterMessageType(ctx context.Context, name MessageTypeName, c MessageTypeChanges) error {
	return b.exec(ctx, "alter_message_type", `
select sb.alter_message_type(
  name => @name::text,
  validation => @validation::text,
  validator => @validator::text::regprocedure,
  schema => @schema::text::jsonb)`,
		args{
			"name":       string(name),
			"validation": (*string)(c.Validation),
			"validator":  c.Validator,
			"schema":     orNull(string(c.Schema)),
		})
}

// DropMessageType drops a message type that no contract names.
func (b *Broker) DropMessageType(ctx context.Context, name MessageTypeName, o DropOptions) error {
	return b.exec(ctx, "drop_message_type", `
select sb.drop_message_type(name => @name::text, if_exists => @if_exists::boolean)`,
		args{"name": string(name), "if_exists": o.IfExists})
}

// Contract says what CreateContract creates: which side may send which message types. The initiator
// must be able to send at least one.
type Contract struct {
	Name            ContractName
	SentByInitiator []MessageTypeName
	SentByTarget    []MessageTypeName
	SentByAny       []MessageTypeName
	IfNotExists     bool
}

// CreateContract creates a contract.
func (b *Broker) CreateContract(ctx context.Context, c Contract) error {
	return b.exec(ctx, "create_contract", `
select sb.create_contract(
  name => @name::text,
  sent_by_initiator => @sent_by_initiator::text[],
  sent_by_target => @sent_by_target::text[],
  sent_by_any => @sent_by_any::text[],
  if_not_exists => @if_not_exists::boolean)`,
		args{
			"name":              string(c.Name),
			"sent_by_initiator": texts(c.SentByInitiator),
			"sent_by_target":    texts(c.SentByTarget),
			"sent_by_any":       texts(c.SentByAny),
			"if_not_exists":     c.IfNotExists,
		})
}

// DropContract drops a contract that no service lists. Conversations that follow it end with an error.
func (b *Broker) DropContract(ctx context.Context, name ContractName, o DropOptions) error {
	return b.exec(ctx, "drop_contract", `
select sb.drop_contract(name => @name::text, if_exists => @if_exists::boolean)`,
		args{"name": string(name), "if_exists": o.IfExists})
}

// Queue says what CreateQueue creates.
type Queue struct {
	Name QueueName
	// Disabled creates the queue switched off: nothing arrives in it or is received from it.
	Disabled bool
	// Retention keeps received messages and copies of sent ones until their conversation ends.
	Retention bool
	// ActivationProcedure is the schema.name of a function or procedure without arguments that the
	// activator calls while there are messages.
	ActivationProcedure string
	// MaxQueueReaders is how many of them run at once; 0 is the default, 1.
	MaxQueueReaders int
	// ActivationDisabled stores the procedure without calling it.
	ActivationDisabled bool
	// ExecuteAs is the role they run as; empty is the queue's owner.
	ExecuteAs string
	// NoPoisonMessageHandling leaves the queue on however often receives are rolled back.
	NoPoisonMessageHandling bool
	IfNotExists             bool
}

// CreateQueue creates a queue.
func (b *Broker) CreateQueue(ctx context.Context, q Queue) error {
	return b.exec(ctx, "create_queue", `
select sb.create_queue(
  name => @name::text,
  enabled => @enabled::boolean,
  retention => @retention::boolean,
  activation_procedure => @activation_procedure::text,
  max_queue_readers => @max_queue_readers::integer,
  activation_enabled => @activation_enabled::boolean,
  execute_as => @execute_as::name,
  poison_message_handling => @poison_message_handling::boolean,
  if_not_exists => @if_not_exists::boolean)`,
		args{
			"name":                    string(q.Name),
			"enabled":                 !q.Disabled,
			"retention":               q.Retention,
			"activation_procedure":    orNull(q.ActivationProcedure),
			"max_queue_readers":       orNull(q.MaxQueueReaders),
			"activation_enabled":      !q.ActivationDisabled,
			"execute_as":              orNull(q.ExecuteAs),
			"poison_message_handling": !q.NoPoisonMessageHandling,
			"if_not_exists":           q.IfNotExists,
		})
}

// QueueChanges says what AlterQueue changes.
type QueueChanges struct {
	// Enabled switches the queue on, which delivers what waits for it and forgets its rolled-back
	// receives, or off.
	Enabled               *bool
	Retention             *bool
	ActivationProcedure   *string
	MaxQueueReaders       *int
	ActivationEnabled     *bool
	ExecuteAs             *string
	PoisonMessageHandling *bool
	// DropActivation erases all activation settings.
	DropActivation bool
}

// AlterQueue changes settings of a queue.
func (b *Broker) AlterQueue(ctx context.Context, name QueueName, c QueueChanges) error {
	return b.exec(ctx, "alter_queue", `
select sb.alter_queue(
  name => @name::text,
  enabled => @enabled::boolean,
  retention => @retention::boolean,
  activation_procedure => @activation_procedure::text,
  max_queue_readers => @max_queue_readers::integer,
  activation_enabled => @activation_enabled::boolean,
  execute_as => @execute_as::name,
  poison_message_handling => @poison_message_handling::boolean,
  drop_activation => @drop_activation::boolean)`,
		args{
			"name":                    string(name),
			"enabled":                 c.Enabled,
			"retention":               c.Retention,
			"activation_procedure":    c.ActivationProcedure,
			"max_queue_readers":       c.MaxQueueReaders,
			"activation_enabled":      c.ActivationEnabled,
			"execute_as":              c.ExecuteAs,
			"poison_message_handling": c.PoisonMessageHandling,
			"drop_activation":         c.DropActivation,
		})
}

// DropQueue drops a queue that no service uses.
func (b *Broker) DropQueue(ctx context.Context, name QueueName, o DropOptions) error {
	return b.exec(ctx, "drop_queue", `
select sb.drop_queue(name => @name::text, if_exists => @if_exists::boolean)`,
		args{"name": string(name), "if_exists": o.IfExists})
}

// Service says what CreateService creates.
type Service struct {
	Name  ServiceName
	Queue QueueName
	// Contracts that the service accepts as target, DefaultContract among them only when named. A service
	// without contracts can only initiate.
	Contracts   []ContractName
	IfNotExists bool
}

// CreateService creates a service and delivers what already waits for it.
func (b *Broker) CreateService(ctx context.Context, s Service) error {
	return b.exec(ctx, "create_service", `
select sb.create_service(
  name => @name::text,
  queue_name => @queue_name::text,
  contracts => @contracts::text[],
  if_not_exists => @if_not_exists::boolean)`,
		args{
			"name":          string(s.Name),
			"queue_name":    string(s.Queue),
			"contracts":     texts(s.Contracts),
			"if_not_exists": s.IfNotExists,
		})
}

// ServiceChanges says what AlterService changes; something it must change.
type ServiceChanges struct {
	// Queue moves the service with its messages to another queue.
	Queue         *QueueName
	AddContracts  []ContractName
	DropContracts []ContractName
}

// AlterService changes the queue or the contracts of a service.
func (b *Broker) AlterService(ctx context.Context, name ServiceName, c ServiceChanges) error {
	return b.exec(ctx, "alter_service", `
select sb.alter_service(
  name => @name::text,
  queue_name => @queue_name::text,
  add_contracts => @add_contracts::text[],
  drop_contracts => @drop_contracts::text[])`,
		args{
			"name":           string(name),
			"queue_name":     (*string)(c.Queue),
			"add_contracts":  texts(c.AddContracts),
			"drop_contracts": texts(c.DropContracts),
		})
}

// DropService drops a service with its messages and conversations; peers receive an Error.
func (b *Broker) DropService(ctx context.Context, name ServiceName, o DropOptions) error {
	return b.exec(ctx, "drop_service", `
select sb.drop_service(name => @name::text, if_exists => @if_exists::boolean)`,
		args{"name": string(name), "if_exists": o.IfExists})
}

// AddressLocal is the address of services in this database.
const AddressLocal = "LOCAL"

// Route says what CreateRoute creates.
type Route struct {
	Name string
	// Address is AddressLocal, or remote://server with a server of the activator's configuration.
	Address string
	// Service that the route leads to; empty is any.
	Service ServiceName
	// BrokerInstance that the route leads to; empty is any.
	BrokerInstance string
	// Lifetime after which the route no longer counts; 0 is no limit.
	Lifetime      time.Duration
	MirrorAddress string
	IfNotExists   bool
}

// CreateRoute creates a route.
func (b *Broker) CreateRoute(ctx context.Context, r Route) error {
	return b.exec(ctx, "create_route", `
select sb.create_route(
  name => @name::text,
  address => @address::text,
  service_name => @service_name::text,
  broker_instance => @broker_instance::text,
  lifetime => @lifetime::interval,
  mirror_address => @mirror_address::text,
  if_not_exists => @if_not_exists::boolean)`,
		args{
			"name":            r.Name,
			"address":         r.Address,
			"service_name":    orNull(string(r.Service)),
			"broker_instance": orNull(r.BrokerInstance),
			"lifetime":        orNull(r.Lifetime),
			"mirror_address":  orNull(r.MirrorAddress),
			"if_not_exists":   r.IfNotExists,
		})
}

// RouteChanges says what AlterRoute changes. It cannot clear a setting: drop and create the route instead.
type RouteChanges struct {
	Address        *string
	Service        *ServiceName
	BrokerInstance *string
	Lifetime       *time.Duration
	MirrorAddress  *string
}

// AlterRoute changes a route.
func (b *Broker) AlterRoute(ctx context.Context, name string, c RouteChanges) error {
	return b.exec(ctx, "alter_route", `
select sb.alter_route(
  name => @name::text,
  address => @address::text,
  service_name => @service_name::text,
  broker_instance => @broker_instance::text,
  lifetime => @lifetime::interval,
  mirror_address => @mirror_address::text)`,
		args{
			"name":            name,
			"address":         c.Address,
			"service_name":    (*string)(c.Service),
			"broker_instance": c.BrokerInstance,
			"lifetime":        c.Lifetime,
			"mirror_address":  c.MirrorAddress,
		})
}

// DropRoute drops a route; messages that used it wait for another.
func (b *Broker) DropRoute(ctx context.Context, name string, o DropOptions) error {
	return b.exec(ctx, "drop_route", `
select sb.drop_route(name => @name::text, if_exists => @if_exists::boolean)`,
		args{"name": name, "if_exists": o.IfExists})
}

// BrokerPriority says what CreateBrokerPriority creates: the priority of conversations begun later that
// match. Empty names match any.
type BrokerPriority struct {
	Name          string
	Contract      ContractName
	LocalService  ServiceName
	RemoteService ServiceName
	// Level is 1 to 10, higher first; 0 is the default, 5.
	Level       int
	IfNotExists bool
}

// CreateBrokerPriority creates a priority.
func (b *Broker) CreateBrokerPriority(ctx context.Context, p BrokerPriority) error {
	return b.exec(ctx, "create_broker_priority", `
select sb.create_broker_priority(
  name => @name::text,
  contract_name => @contract_name::text,
  local_service_name => @local_service_name::text,
  remote_service_name => @remote_service_name::text,
  priority_level => @priority_level::smallint,
  if_not_exists => @if_not_exists::boolean)`,
		args{
			"name":                p.Name,
			"contract_name":       orNull(string(p.Contract)),
			"local_service_name":  orNull(string(p.LocalService)),
			"remote_service_name": orNull(string(p.RemoteService)),
			"priority_level":      cmp.Or(p.Level, 5),
			"if_not_exists":       p.IfNotExists,
		})
}

// BrokerPriorityChanges says what AlterBrokerPriority changes.
type BrokerPriorityChanges struct {
	Contract      *ContractName
	LocalService  *ServiceName
	RemoteService *ServiceName
	Level         *int
}

// AlterBrokerPriority changes a priority for conversations begun later.
func (b *Broker) AlterBrokerPriority(ctx context.Context, name string, c BrokerPriorityChanges) error {
	return b.exec(ctx, "alter_broker_priority", `
select sb.alter_broker_priority(
  name => @name::text,
  contract_name => @contract_name::text,
  local_service_name => @local_service_name::text,
  remote_service_name => @remote_service_name::text,
  priority_level => @priority_level::smallint)`,
		args{
			"name":                name,
			"contract_name":       (*string)(c.Contract),
			"local_service_name":  (*string)(c.LocalService),
			"remote_service_name": (*string)(c.RemoteService),
			"priority_level":      c.Level,
		})
}

// DropBrokerPriority drops a priority; conversations keep what they have.
func (b *Broker) DropBrokerPriority(ctx context.Context, name string, o DropOptions) error {
	return b.exec(ctx, "drop_broker_priority", `
select sb.drop_broker_priority(name => @name::text, if_exists => @if_exists::boolean)`,
		args{"name": name, "if_exists": o.IfExists})
}

// Event is what an event notification tells of.
type Event string

// The events of queues.
const (
	// EventQueueActivation says that a queue has work and needs a reader.
	EventQueueActivation Event = "QUEUE_ACTIVATION"
	// EventBrokerQueueDisabled says that rolled-back receives have switched a queue off.
	EventBrokerQueueDisabled Event = "BROKER_QUEUE_DISABLED"
)

// EventNotification says what CreateEventNotification creates: messages to a service about a queue.
type EventNotification struct {
	Name      string
	Queue     QueueName
	Event     Event
	ToService ServiceName
	// BrokerInstance of the service; empty is this database.
	BrokerInstance string
	IfNotExists    bool
}

// CreateEventNotification creates an event notification. Names are unique per queue.
func (b *Broker) CreateEventNotification(ctx context.Context, n EventNotification) error {
	return b.exec(ctx, "create_event_notification", `
select sb.create_event_notification(
  name => @name::text,
  queue_name => @queue_name::text,
  event => @event::text,
  to_service => @to_service::text,
  broker_instance => @broker_instance::text,
  if_not_exists => @if_not_exists::boolean)`,
		args{
			"name":            n.Name,
			"queue_name":      string(n.Queue),
			"event":           string(n.Event),
			"to_service":      string(n.ToService),
			"broker_instance": orNull(n.BrokerInstance),
			"if_not_exists":   n.IfNotExists,
		})
}

// DropEventNotification drops an event notification of a queue.
func (b *Broker) DropEventNotification(ctx context.Context, name string, queue QueueName, o DropOptions) error {
	return b.exec(ctx, "drop_event_notification", `
select sb.drop_event_notification(
  name => @name::text, queue_name => @queue_name::text, if_exists => @if_exists::boolean)`,
		args{"name": name, "queue_name": string(queue), "if_exists": o.IfExists})
}

// EnableBroker switches delivery on and delivers what waits.
func (b *Broker) EnableBroker(ctx context.Context) error {
	return b.exec(ctx, "enable_broker", `select sb.enable_broker()`, nil)
}

// DisableBroker switches delivery off: messages wait, what has arrived can be received.
func (b *Broker) DisableBroker(ctx context.Context) error {
	return b.exec(ctx, "disable_broker", `select sb.disable_broker()`, nil)
}

// NewBroker gives the database a new broker instance and removes all conversations without a word.
func (b *Broker) NewBroker(ctx context.Context) error {
	return b.exec(ctx, "new_broker", `select sb.new_broker()`, nil)
}

// ErrorBrokerConversations puts an Error (-9719) on every conversation.
func (b *Broker) ErrorBrokerConversations(ctx context.Context) error {
	return b.exec(ctx, "error_broker_conversations", `select sb.error_broker_conversations()`, nil)
}

// ObjectKind is a kind of object that has an owner.
type ObjectKind string

// The kinds of objects that AlterAuthorization knows.
const (
	KindOfMessageType ObjectKind = "message_type"
	KindOfContract    ObjectKind = "contract"
	KindOfQueue       ObjectKind = "queue"
	KindOfService     ObjectKind = "service"
	KindOfRoute       ObjectKind = "route"
)

// AlterAuthorization gives an object to another role, which the caller must be a member of.
func (b *Broker) AlterAuthorization(ctx context.Context, kind ObjectKind, name, newOwner string) error {
	return b.exec(ctx, "alter_authorization", `
select sb.alter_authorization(kind => @kind::text, name => @name::text, new_owner => @new_owner::name)`,
		args{"kind": string(kind), "name": name, "new_owner": newOwner})
}

// Public is every role, in grants.
const Public = "public"

// GrantAdmin lets a role run every DDL verb and see and end everything.
func (b *Broker) GrantAdmin(ctx context.Context, role string) error {
	return b.exec(ctx, "grant_admin", `select sb.grant_admin(role => @role::name)`, args{"role": role})
}

// RevokeAdmin takes back GrantAdmin.
func (b *Broker) RevokeAdmin(ctx context.Context, role string) error {
	return b.exec(ctx, "revoke_admin", `select sb.revoke_admin(role => @role::name)`, args{"role": role})
}

// GrantSend lets services owned by the role send to the service.
func (b *Broker) GrantSend(ctx context.Context, service ServiceName, role string) error {
	return b.exec(ctx, "grant_send", `
select sb.grant_send(service_name => @service_name::text, role => @role::name)`,
		args{"service_name": string(service), "role": role})
}

// RevokeSend takes back GrantSend.
func (b *Broker) RevokeSend(ctx context.Context, service ServiceName, role string) error {
	return b.exec(ctx, "revoke_send", `
select sb.revoke_send(service_name => @service_name::text, role => @role::name)`,
		args{"service_name": string(service), "role": role})
}

// GrantReceive lets the role receive from the queue, and send on the conversations of its services.
func (b *Broker) GrantReceive(ctx context.Context, queue QueueName, role string) error {
	return b.exec(ctx, "grant_receive", `
select sb.grant_receive(queue_name => @queue_name::text, role => @role::name)`,
		args{"queue_name": string(queue), "role": role})
}

// RevokeReceive takes back GrantReceive.
func (b *Broker) RevokeReceive(ctx context.Context, queue QueueName, role string) error {
	return b.exec(ctx, "revoke_receive", `
select sb.revoke_receive(queue_name => @queue_name::text, role => @role::name)`,
		args{"queue_name": string(queue), "role": role})
}

// GrantReferences lets the role use the contract.
func (b *Broker) GrantReferences(ctx context.Context, contract ContractName, role string) error {
	return b.exec(ctx, "grant_references", `
select sb.grant_references(contract_name => @contract_name::text, role => @role::name)`,
		args{"contract_name": string(contract), "role": role})
}

// RevokeReferences takes back GrantReferences.
func (b *Broker) RevokeReferences(ctx context.Context, contract ContractName, role string) error {
	return b.exec(ctx, "revoke_references", `
select sb.revoke_references(contract_name => @contract_name::text, role => @role::name)`,
		args{"contract_name": string(contract), "role": role})
}

// Option names a setting of the broker of the whole database.
type Option string

// The options, with their values.
const (
	// OptionSystemNames is "documented" (the default) or "sqlserver": the names of system message types.
	OptionSystemNames Option = "system_names"
	// OptionHonorBrokerPriority is "on" or "off" (the default): whether waiting messages are delivered by
	// priority.
	OptionHonorBrokerPriority Option = "honor_broker_priority"
	// OptionValidateOnSend is "on" or "off" (the default): whether an invalid body makes Send fail.
	OptionValidateOnSend Option = "validate_on_send"
	// OptionPoisonMessageThreshold is how many rolled-back receives in a row switch a queue off; 5 by
	// default.
	OptionPoisonMessageThreshold Option = "poison_message_threshold"
)

// SetOption sets an option of the broker.
func (b *Broker) SetOption(ctx context.Context, name Option, value string) error {
	return b.exec(ctx, "set_option", `select sb.set_option(name => @name::text, value => @value::text)`,
		args{"name": string(name), "value": value})
}

// StateTable says what CreateStateTable creates: a table of the caller's with a key conversation_group_id.
type StateTable struct {
	// Name is an SQL name: quoted and qualified where it has to be.
	Name string
	// Columns is the list of further columns, as in CREATE TABLE. It is SQL that runs with the caller's
	// rights.
	Columns string
	// KeepOnEnd keeps the row of a group when its last conversation ends; only admins may do without.
	KeepOnEnd bool
}

// CreateStateTable creates a table for state that State cannot hold.
func (b *Broker) CreateStateTable(ctx context.Context, t StateTable) error {
	return b.exec(ctx, "create_state_table", `
select sb.create_state_table(
  table_name => @table_name::text,
  columns => @columns::text,
  drop_on_end => @drop_on_end::boolean)`,
		args{"table_name": t.Name, "columns": t.Columns, "drop_on_end": !t.KeepOnEnd})
}

// DropStateTable drops a table that CreateStateTable created.
func (b *Broker) DropStateTable(ctx context.Context, name string, o DropOptions) error {
	return b.exec(ctx, "drop_state_table", `
select sb.drop_state_table(table_name => @table_name::text, if_exists => @if_exists::boolean)`,
		args{"table_name": name, "if_exists": o.IfExists})
}
