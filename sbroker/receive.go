package sbroker

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ReceiveOptions says which messages Receive takes. The zero value takes every ready message of the
// group that is next.
type ReceiveOptions struct {
	// Max messages; 0 is every ready message of the group. All of them are held in memory.
	Max int
	// Conversation restricts Receive to one conversation. Give at most one of Conversation and Group.
	Conversation Handle
	// Group restricts Receive to one group. Receive waits for a group (or the group of Conversation)
	// that another transaction holds; without either it passes groups over that are held.
	Group GroupID
	// Timeout makes the server wait inside the transaction, for the lock and for a message together;
	// negative is without limit, 0 waits for a lock only. Such a wait occupies the connection and holds
	// back vacuum: to wait for messages use a Listener.
	Timeout time.Duration
}

// Receive takes messages of one conversation group, in the order in which they must be processed. The
// group is held until the transaction ends, so that nobody else works on it; rollback puts the messages
// back in their place. Outside a transaction they are gone when Receive returns. None is no error.
//
// When ctx ends during the call, a transaction is lost and the messages are back in the queue; outside a
// transaction they may be gone, unseen.
func (b *Broker) Receive(ctx context.Context, queue QueueName, o ReceiveOptions) ([]Message, error) {
	rows, err := b.db.Query(ctx, `
select
  r.status, r.priority, r.queuing_order, r.conversation_group_id, r.conversation_handle,
  r.message_sequence_number, r.service_name, r.service_id, r.service_contract_name, r.service_contract_id,
  r.message_type_name, r.message_type_id, r.validation, r.message_body, r.message_enqueue_time
from sb.receive(
  queue_name => @queue_name::text,
  max_messages => @max_messages::integer,
  for_conversation => @for_conversation::uuid,
  for_group => @for_group::uuid,
  timeout => @timeout::interval) as r`,
		args{
			"queue_name":       string(queue),
			"max_messages":     orNull(o.Max),
			"for_conversation": o.Conversation,
			"for_group":        o.Group,
			"timeout":          orNull(o.Timeout),
		})
	if err != nil {
		return nil, opError("receive", err)
	}
	messages, err := pgx.CollectRows(rows, scanMessage)
	if err != nil {
		return nil, opError("receive", err)
	}
	return messages, nil
}

func scanMessage(row pgx.CollectableRow) (m Message, err error) {
	err = row.Scan(
		&m.Status, &m.Priority, &m.QueuingOrder, &m.Group, &m.Conversation,
		&m.SequenceNumber, &m.Service, &m.ServiceID, &m.Contract, &m.ContractID,
		&m.Type, &m.TypeID, &m.Validation, &m.Body, &m.EnqueuedAt)
	m.EnqueuedAt = m.EnqueuedAt.UTC()
	return m, err
}

// GetConversationGroup picks the group that Receive would take from, holds it until the transaction
// ends and removes nothing. The zero GroupID means that there is none.
func (b *Broker) GetConversationGroup(ctx context.Context, queue QueueName) (GroupID, error) {
	return value[GroupID](ctx, b, "get_conversation_group", `
select sb.get_conversation_group(queue_name => @queue_name::text)`,
		args{"queue_name": string(queue)})
}
