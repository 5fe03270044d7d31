package sbroker

import "context"

// Deliver moves on what waits in the transmission queue and can be delivered, for one queue or, when
// queue is empty, for all, and returns how many messages moved. Activators call it.
func (b *Broker) Deliver(ctx context.Context, queue QueueName) (int64, error) {
	return value[int64](ctx, b, "deliver", `
select sb.deliver(queue_name => @queue_name::text)::bigint`,
		args{"queue_name": orNull(string(queue))})
}

// Maintain does a bounded amount of housekeeping. Nothing depends on it for being right. Activators call
// it.
func (b *Broker) Maintain(ctx context.Context) error {
	return b.exec(ctx, "maintain", `select sb.maintain()`, nil)
}

// AfterRestore is to be called once after a data-only restore or a logical failover.
func (b *Broker) AfterRestore(ctx context.Context) error {
	return b.exec(ctx, "after_restore", `select sb.after_restore()`, nil)
}

// StartWaiting announces that this session LISTENs for the queue and is about to sleep. It needs a Broker
// on a direct connection outside a transaction. A Listener does it all.
func (b *Broker) StartWaiting(ctx context.Context, queue QueueName) error {
	return b.exec(ctx, "start_waiting", `select sb.start_waiting(queue_name => @queue_name::text)`,
		args{"queue_name": string(queue)})
}

// StopWaiting takes back StartWaiting.
func (b *Broker) StopWaiting(ctx context.Context, queue QueueName) error {
	return b.exec(ctx, "stop_waiting", `select sb.stop_waiting(queue_name => @queue_name::text)`,
		args{"queue_name": string(queue)})
}
