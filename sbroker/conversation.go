package sbroker

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
)

// Dialog says what BeginDialog begins.
type Dialog struct {
	// From is the initiating service, of this database.
	From ServiceName
	// To is the target service. It is not looked up: a service that does not exist shows in
	// TransmissionStatus, one that refuses the dialog in an Error message.
	To ServiceName
	// Contract defaults to DefaultContract.
	Contract ContractName
	// BrokerInstance names one copy of the target service; empty is any.
	BrokerInstance string
	// RelatedConversation puts the dialog into the group of that conversation.
	RelatedConversation Handle
	// RelatedGroup puts the dialog into that group, which is created under this id when it does not
	// exist. Give at most one of the two; none makes a new group.
	RelatedGroup GroupID
	// Lifetime after which the dialog is broken with error -8489 on both sides; 0 is no limit.
	Lifetime time.Duration
	// EncryptionOff is accepted for compatibility; within one database nothing is encrypted.
	EncryptionOff bool
}

// BeginDialog begins a dialog and returns this side's handle. Nothing is sent and the peer learns
// nothing before the first Send. The new conversation's group is held until the transaction ends.
func (b *Broker) BeginDialog(ctx context.Context, d Dialog) (Handle, error) {
	return value[Handle](ctx, b, "begin_dialog", `
select sb.begin_dialog(
  from_service => @from_service::text,
  to_service => @to_service::text,
  on_contract => @on_contract::text,
  broker_instance => @broker_instance::text,
  related_conversation => @related_conversation::uuid,
  related_conversation_group => @related_conversation_group::uuid,
  lifetime => @lifetime::interval,
  encryption => @encryption::boolean)`,
		args{
			"from_service":               string(d.From),
			"to_service":                 string(d.To),
			"on_contract":                string(cmp.Or(d.Contract, DefaultContract)),
			"broker_instance":            orNull(d.BrokerInstance),
			"related_conversation":       d.RelatedConversation,
			"related_conversation_group": d.RelatedGroup,
			"lifetime":                   orNull(d.Lifetime),
			"encryption":                 !d.EncryptionOff,
		})
}

// Send sends one message. A nil body is no body; an empty one arrives as none. The message counts from
// the commit of the transaction. Send waits for other transactions that have sent on, moved or ended
// the same conversation, never for readers.
func (b *Broker) Send(ctx context.Context, h Handle, messageType MessageTypeName, body []byte) error {
	if body == nil {
		return b.SendEmpty(ctx, h, messageType)
	}
	return b.exec(ctx, "send", `
select sb.send(
  conversation_handle => @conversation_handle::uuid,
  message_type => @message_type::text,
  message_body => @message_body::bytea)`,
		args{"conversation_handle": h, "message_type": string(messageType), "message_body": body})
}

// SendText sends one message with a text body. It differs from Send in how XML is validated: an
// encoding that the text declares does not matter.
func (b *Broker) SendText(ctx context.Context, h Handle, messageType MessageTypeName, body string) error {
	return b.exec(ctx, "send", `
select sb.send(
  conversation_handle => @conversation_handle::uuid,
  message_type => @message_type::text,
  message_body => @message_body::text)`,
		args{"conversation_handle": h, "message_type": string(messageType), "message_body": body})
}

// SendJSON sends one message whose body is the JSON encoding of v.
func (b *Broker) SendJSON(ctx context.Context, h Handle, messageType MessageTypeName, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return opError("send", err)
	}
	return b.Send(ctx, h, messageType, body)
}

// SendEmpty sends one message without a body.
func (b *Broker) SendEmpty(ctx context.Context, h Handle, messageType MessageTypeName) error {
	return b.exec(ctx, "send", `
select sb.send(
  conversation_handle => @conversation_handle::uuid,
  message_type => @message_type::text)`,
		args{"conversation_handle": h, "message_type": string(messageType)})
}

// SendBatch sends messages of one type on one conversation in the order given, in one round trip. It
// sends all or none. A nil or empty body arrives as none.
func (b *Broker) SendBatch(ctx context.Context, h Handle, messageType MessageTypeName, bodies [][]byte) error {
	present := make([][]byte, len(bodies)) // an empty array, not NULL, for no bodies at all
	for i, body := range bodies {
		present[i] = notNil(body)
	}
	return b.exec(ctx, "send_batch", `
select sb.send_batch(
  conversation_handle => @conversation_handle::uuid,
  message_type => @message_type::text,
  message_bodies => @message_bodies::bytea[])`,
		args{"conversation_handle": h, "message_type": string(messageType), "message_bodies": present})
}

// Multicast sends the same message on several conversations, on all or on none. The same handle twice
// is CodeDuplicateHandle. A nil or empty body arrives as none.
func (b *Broker) Multicast(ctx context.Context, hs []Handle, messageType MessageTypeName, body []byte) error {
	// As text, because pgx knows no array type for Handle when it may not ask the server.
	handles := make([]*string, len(hs))
	for i, h := range hs {
		if !h.IsZero() {
			handles[i] = new(h.String())
		}
	}
	return b.exec(ctx, "multicast", `
select sb.multicast(
  conversation_handles => @conversation_handles::text[]::uuid[],
  message_type => @message_type::text,
  message_body => @message_body::bytea)`,
		args{"conversation_handles": handles, "message_type": string(messageType), "message_body": notNil(body)})
}

// notNil makes a missing body an empty one for the verbs that have no form without a body: SQL refuses
// NULL, as SQL Server does, and both arrive as no body.
func notNil(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}

// Move puts the conversation, with what it has in the queue, into another existing group of the same
// service.
func (b *Broker) Move(ctx context.Context, h Handle, to GroupID) error {
	return b.exec(ctx, "move_conversation", `
select sb.move_conversation(
  conversation_handle => @conversation_handle::uuid,
  conversation_group_id => @conversation_group_id::uuid)`,
		args{"conversation_handle": h, "conversation_group_id": to})
}

// End ends this side of the conversation. What it has sent is still delivered, then the peer receives
// EndDialog. What waits in this side's queue is removed.
func (b *Broker) End(ctx context.Context, h Handle) error {
	return b.exec(ctx, "end_conversation", `
select sb.end_conversation(conversation_handle => @conversation_handle::uuid)`,
		args{"conversation_handle": h})
}

// EndWithError ends this side as End does, but the peer receives an Error with this positive code, and
// what has not been delivered yet is dropped.
func (b *Broker) EndWithError(ctx context.Context, h Handle, code int32, description string) error {
	return b.exec(ctx, "end_conversation", `
select sb.end_conversation(
  conversation_handle => @conversation_handle::uuid,
  error_code => @error_code::integer,
  error_description => @error_description::text)`,
		args{"conversation_handle": h, "error_code": code, "error_description": description})
}

// EndCleanup removes this side of the conversation in whatever state it is, without a word to the peer.
// It is for clearing up after a peer that is gone for good.
func (b *Broker) EndCleanup(ctx context.Context, h Handle) error {
	return b.exec(ctx, "end_conversation", `
select sb.end_conversation(
  conversation_handle => @conversation_handle::uuid,
  cleanup => true)`,
		args{"conversation_handle": h})
}

// BeginTimer makes a DialogTimer message due on this side after d, once. A conversation has one timer:
// beginning it again replaces the time.
func (b *Broker) BeginTimer(ctx context.Context, h Handle, d time.Duration) error {
	return b.exec(ctx, "begin_conversation_timer", `
select sb.begin_conversation_timer(
  conversation_handle => @conversation_handle::uuid,
  timeout => @timeout::interval)`,
		args{"conversation_handle": h, "timeout": d})
}

// CancelTimer cancels the timer of this side, if there is one.
func (b *Broker) CancelTimer(ctx context.Context, h Handle) error {
	return b.exec(ctx, "cancel_conversation_timer", `
select sb.cancel_conversation_timer(conversation_handle => @conversation_handle::uuid)`,
		args{"conversation_handle": h})
}

// TransmissionStatus says why messages of this side still wait in the transmission queue; it is empty
// when nothing is wrong, and for an unknown handle.
func (b *Broker) TransmissionStatus(ctx context.Context, h Handle) (string, error) {
	return value[string](ctx, b, "get_transmission_status", `
select coalesce(sb.get_transmission_status(conversation_handle => @conversation_handle::uuid), '')`,
		args{"conversation_handle": h})
}
