// Package activator runs the handlers of queues while there is something for them to receive: activation
// procedures in the database, Go handlers in the process of the service that they belong to, and programs of any
// language ([ExecHandler], [HTTPHandler], [Activator.HandleProgram]).
//
//	a, err := activator.New(activator.Config{DatabaseURL: "postgres://worker@db/app"})
//	if err != nil {
//		return err
//	}
//	a.HandleFunc("ExpenseQueue", func(ctx context.Context, b *activator.Batch) error {
//		for _, m := range b.Messages {
//			…
//		}
//		return nil // commits receive, state, sends and b.Tx's statements together
//	})
//	return a.Run(ctx)
//
// [Activator.Run] blocks, and reconnects by itself. Any number of activators, on any number of hosts, may work
// on one database; they share the work and know nothing of each other. The process of package
// main in cmd/sbactivator is one without Go handlers.
//
// # What a handler may rely on
//
// [Handler] has the contract of Go handlers. An activation procedure is a function or procedure without arguments,
// set with sb.alter_queue:
//
//   - A function is called in a transaction of its own, which commits when the function returns; Config.HandlerTimeout
//     limits it. A procedure is called outside a transaction and commits itself. Both are called
//     again while there is something to receive, so that neither needs a loop.
//   - It runs as the queue's execute_as role, by SET ROLE: identity, not isolation, for it can RESET that.
//     Therefore a superuser runs none. The settings are those of the activator's login role, but "$user" in its
//     search_path is the execute_as role.
//   - NOTICEs, warnings and errors go to the log with queue and procedure; results are discarded.
//   - One that fails is called again after 0.1 s, doubling to 30 s. One that receives nothing although something is there
//     is slowed down in the same way, until somebody receives, the procedure is replaced, or the queue is altered (state NOTIFIED).
//
// What was received and rolled back counts for the poison limit of the queue, whoever did it and for
// whatever reason; only what Run rolls back at its end does not, except in programs, whose sessions it does not know, nor what
// was received for an [ExternalHandler] that has not seen it.
//
// # The life of a queue
//
// A monitor watches each queue that has activation on or a handler:
//
//		            notification, due timer, look finds something
//		  ┌────────┐ ───────────────────────────────────────────► ┌─────────┐ ─┐ found something,
//		  │ asleep │                                               │ reading │  │ limit not reached:
//		  │ flag up│ ◄──────────┐                                  │ 1…limit │ ◄┘ one more reader
//		  └────────┘            │                                  └─────────┘
//		      ▲                 │ nothing ready at all,               │    │ error, or nothing
//		      │                 │ fence passed                        │    │ received
//		      │            ┌──────────┐    last reader found nothing  │    ▼
//		      │            │ settling │ ◄─────────────────────────────┘ ┌─────────┐
//		      │            │ flag up  │ ◄────────────────────────────── │ resting │
//		      └─ due time  └──────────┘        the rest is over         └─────────┘
//
//	  - Asleep: the waiting flag is up, so that every sender notifies (and only now: a notifying commit
//	    is slow). The monitor wakes at the earliest due time of a timer or lifetime, and with every poll.
//	  - Reading: each reader is a goroutine with a connection, and works until it finds nothing. The flag
//	    is lowered when the queue has been busy for a moment. While readers are busy, others are tried at
//	    short intervals: a rollback elsewhere, or a message of another group, is not announced.
//	  - Settling: the flag is up, but a sender that looked for it before may still commit unannounced, and
//	    a group that somebody holds comes back by a rollback. So the monitor looks at short and growing intervals until every
//	    transaction that was writing when the flag went up (sb.queue_writers, the fence) has ended and
//	    no ready row is left, held ones included.
//	  - Resting: after failures of a procedure, or of the database, and while an [ExternalHandler] cannot work. A failed
//	    Go handler does not make its queue rest, only the conversation group.
//
// # Who runs what
//
//	scheduler  reads the plan (sb.activation_plan), looks (sb.activation_scan) at the queues whose time has come, and
//	           at all of them every Config.PollInterval. Everything works by this alone.
//	listener   one connection outside every pool: LISTEN, the waiting flags, a heartbeat. Whenever it connects,
//	           everything is looked at: listen, scan, wait, in this order.
//	readers    one transaction (or CALL) after another.
//	forwarder  sb.deliver when a row was put into the transmission queue, then after 4, 8, 16, 32, 64 s while one is left;
//	           sb.maintain every minute, by the one activator whose listener has the lock (8421, 0).
//	reporter   what sb.dm_broker_activated_tasks and sb.dm_broker_queue_monitors show.
//
// # Who locks what
//
//   - A reader's slot is an advisory lock in the first statement of its transaction (of its session, for a
//     procedure or program), one of max_queue_readers: the limit holds over all activators, and a slot is free as soon as its
//     transaction or session has ended. It does not hold back vacuum, as a row lock would.
//   - Receive locks the conversation group to the end of the transaction, nothing else is held across a handler.
//   - A group's back-off is written by another connection before the failed transaction gives the group
//     free. It touches no row that the failed transaction has locked.
//   - The waiting flag is a session lock of the listener's connection, shared with other activators.
//   - Nothing else is locked for longer than a call.
//
// Within the process, a monitor's mutex is never held during a call to the database, and the mutexes of
// listener, scheduler and Activator are taken after it, never before.
package activator
