// Package sbroker is the Go client of sb, the Service Broker of a PostgreSQL database: dialogs between
// services, whose messages arrive in order, exactly once, and in the transaction that works on them.
//
// A [Broker] calls the verbs through whatever it is given: a pool, a connection or a transaction.
//
//	err := sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
//		h, err := b.BeginDialog(ctx, sbroker.Dialog{From: "clerk", To: "approver", Contract: "expenses"})
//		if err != nil {
//			return err
//		}
//		return b.SendJSON(ctx, h, "report", report)
//	})
//
// [Listener] waits for messages, [State] keeps JSON between the messages of a conversation group, [RunTx]
// retries what deserves it, and package sbrokertest helps to test applications. Handlers that should be
// started when messages arrive belong into package activator.
//
// # Who commits
//
// The caller. Every verb is part of the transaction that the Broker works through; no method begins or
// commits one, except [RunTx] and [Listener.Process], which say so. Through a pool or a bare connection
// every call is a transaction of its own: fine for a single Send, while a Receive has then consumed the
// messages when it returns, whatever happens to the caller.
//
//	send                not seen by anybody before the commit, and as one with all else in the transaction
//	receive             messages leave the queue with the commit; a rollback puts them back in their place
//	begin, end, move,   undone by a rollback without a trace
//	timer, state
//
// # Order, and exactly once
//
//   - Messages of one side of a dialog are received in the order in which they were sent (committed), each
//     one by exactly one committed transaction. Nothing is promised between conversations, except that
//     higher priorities come first.
//   - A transaction that receives from a conversation group holds the group until it ends: two readers
//     never work on one group at the same time, and group state needs no other lock.
//   - Of one conversation, a DialogTimer is received first, then an Error, then the messages in their
//     order. EndDialog has its place in that order, after all that the peer sent.
//   - Exactly once holds for what happens in the database in the same transaction. What a handler does
//     elsewhere may happen again after a rollback.
//   - When a connection breaks during COMMIT nobody can tell whether it happened; RunTx then returns
//     [ErrCommitUnknown] and does not run again. A call outside a transaction commits by itself: when the
//     connection breaks during one, it is in the same doubt.
//
// # What cancellation does
//
// When ctx ends during a call, pgx closes the connection (unless configured otherwise) and the server rolls
// the transaction back: it is lost as a whole, and a pool opens another connection. Outside a transaction
// the call may have happened. When ctx ends between calls, the caller's rollback needs a context that is
// still alive; RunTx takes care of that. A Listener whose ctx ends can be used again.
//
// # Errors
//
// Methods return [*Error]. Compare codes, never texts:
//
//	errors.Is(err, sbroker.CodeQueueDisabled)
//
// A failed verb changes nothing, but inside a transaction PostgreSQL demands a rollback (or a savepoint)
// after any error. Deadlocks that an application makes between its own locks are ordinary: [IsRetryable]
// knows them.
//
// # Connections
//
// Every statement casts its parameters and uses no session state. It works in all query execution modes of
// pgx, the simple protocol included, and through a transaction pooler. Only a Listener needs a
// direct connection. The verbs are written for READ COMMITTED.
package sbroker
