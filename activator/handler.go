package activator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/sbroker"
)

// Handler works on the messages of a queue.
//
// Handle is called in an open transaction that has received the batch. When it returns nil, the activator commits:
// receive, state, sends, ends and the handler's own statements through the batch's transaction
// happen together. When it returns an error or panics, the activator rolls everything back, the messages are in
// their place again, and the conversation group is left alone for 0.1 s, doubling with each failure to
// 30 s; other groups go on. Each such rollback counts for the queue's poison limit: five in a row stop
// the queue. (An ExternalHandler that cannot be reached is another matter: see there.) A failure that another try will not mend is better recorded, or sent back with
// EndWithError, than returned.
//
// The conversation group is held during the call, so that calls for one group never overlap, on any host. Calls for
// different groups do: a Handler must be safe for concurrent use. Handler time is transaction time:
// ctx ends after the handler's timeout, and what the handler does outside the database may happen again.
type Handler interface {
	Handle(ctx context.Context, b *Batch) error
}

// HandlerFunc makes a Handler of a function.
type HandlerFunc func(ctx context.Context, b *Batch) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, b *Batch) error { return f(ctx, b) }

// Batch is what a Handler gets: messages of one conversation group, in the order in which they must be
// processed, and the transaction that received them. It is not valid after the Handler has returned.
type Batch struct {
	// Queue the messages come from.
	Queue sbroker.QueueName
	// Group is the conversation group of all the messages; it is held by the transaction.
	Group sbroker.GroupID
	// Messages, at least one. They may be of several conversations and of every kind: a handler ends
	// the conversation on KindEndDialog and KindError, unless it was registered with AutoEnd.
	Messages []sbroker.Message
	// Broker calls the verbs within the transaction.
	Broker *sbroker.Broker
	// Tx is the transaction, for the handler's own statements. The activator commits it: Commit and
	// Rollback on it fail. Begin makes savepoints.
	Tx pgx.Tx
}

// GroupState is the JSON state of a batch's conversation group as a value of type T.
type GroupState[T any] struct {
	state sbroker.State[T]
	group sbroker.GroupID
}

// StateOf returns the state of the batch's group. It lives until the group's last conversation ends and
// needs no lock: the transaction holds the group.
func StateOf[T any](b *Batch) GroupState[T] {
	return GroupState[T]{state: sbroker.StateOf[T](b.Broker), group: b.Group}
}

// Get returns the state and whether there is one.
func (s GroupState[T]) Get(ctx context.Context) (state T, found bool, err error) {
	return s.state.Get(ctx, s.group)
}

// Set replaces the state, with the transaction.
func (s GroupState[T]) Set(ctx context.Context, state T) error {
	return s.state.Set(ctx, s.group, state)
}

// Remove removes the state, if there is one.
func (s GroupState[T]) Remove(ctx context.Context) error { return s.state.Remove(ctx, s.group) }

// HandlerOptions configures one handler.
type HandlerOptions struct {
	// MaxQueueReaders is how many calls may run at the same time, over all activators of the database. The
	// queue's own max_queue_readers, where it is set, is a limit too, also when it is 0. 0 is the
	// queue's, or 4 where the queue has none.
	MaxQueueReaders int
	// Batch is how many messages one call gets at most; 0 is 10.
	Batch int
	// Timeout replaces Config.HandlerTimeout when it is not 0.
	Timeout time.Duration
	// AutoEnd ends, after the handler, conversations of the batch with an EndDialog or Error that the
	// handler has not ended itself. An ExternalHandler has an option of its own for it.
	AutoEnd bool
}

const (
	defaultReaders = 4
	defaultBatch   = 10
	maxReaders     = 32767
)

func (o HandlerOptions) validate() error {
	switch {
	case o.MaxQueueReaders < 0 || o.MaxQueueReaders > maxReaders:
		return fmt.Errorf("HandlerOptions.MaxQueueReaders is not between 0 and %d", maxReaders)
	case o.Batch < 0 || o.Batch > math.MaxInt32:
		return errors.New("HandlerOptions.Batch is out of range")
	case o.Timeout < 0:
		return errors.New("HandlerOptions.Timeout is negative")
	}
	return nil
}

// A runner is one way to handle a queue: it opens the sessions that readers work in.
type runner interface {
	// open gets a connection.
	open(ctx context.Context) (session, error)
	// describe says what to show of its sessions.
	describe() (procedure, executeAs string)
	// tidy gives up what has been kept for later for too long.
	tidy(now time.Time)
	// close gives up all that is kept. Sessions may still be open.
	close()
}

// A session is what one reader works with, for any number of steps, one at a time.
type session interface {
	// pid of the backend.
	pid() uint32
	// step takes one of so many reader slots, and works once on what is ready. It calls found as soon as
	// it knows that something was received. An error is not the fault of one conversation group: the
	// reader ends, and the queue rests for a while.
	step(ctx context.Context, slots int, found func()) (outcome, error)
	// close gives the connection back, or up when the last step has failed.
	close(failed bool)
}

// outcome is how a step without error ended.
type outcome int

const (
	worked  outcome = iota // there was something; there may be more
	nothing                // nothing was ready that nobody else held
	full                   // all reader slots are taken, or the activator ends
)

// callTimeout bounds what the activator itself asks of the server. None of it waits for anybody.
const callTimeout = 30 * time.Second

// takeReader takes a reader slot for the transaction, or for the session.
func takeReader(ctx context.Context, db sbroker.DBTX, queue int32, slots int, forSession bool) (taken bool, err error) {
	err = db.QueryRow(ctx, `
select sb.take_reader(
  queue_id => @queue_id::integer, max_readers => @max_readers::integer, for_session => @for_session::boolean)`,
		pgx.StrictNamedArgs{"queue_id": queue, "max_readers": slots, "for_session": forSession}).Scan(&taken)
	return taken, err
}

// goRunner runs a Go handler: one transaction of a pooled connection for receive, handler and commit.
type goRunner struct {
	a       *Activator
	queue   int32
	name    sbroker.QueueName
	handler Handler
	options HandlerOptions
}

func (r *goRunner) open(ctx context.Context) (session, error) {
	// Before there is a connection, which others may need while it is found out.
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	conn, err := r.a.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &goSession{goRunner: r, conn: conn}, nil
}

// ready returns when there is somebody to handle a batch.
func (r *goRunner) ready(ctx context.Context) error {
	if h, ok := r.handler.(*ExternalHandler); ok {
		return h.transport.ready(ctx)
	}
	return nil
}

func (r *goRunner) describe() (procedure, executeAs string) {
	if h, ok := r.handler.(*ExternalHandler); ok {
		return h.String(), ""
	}
	return "go handler", ""
}

func (r *goRunner) tidy(time.Time) {}

func (r *goRunner) close() {}

type goSession struct {
	*goRunner
	conn *pgxpool.Conn
}

func (s *goSession) pid() uint32 {
	if s.a.cfg.Pooler {
		return 0 // it would be the pooler's invention
	}
	return s.conn.Conn().PgConn().PID()
}

// close lets the pool destroy a connection that is broken or still in a transaction.
func (s *goSession) close(bool) { s.conn.Release() }

func (s *goSession) step(ctx context.Context, slots int, found func()) (outcome, error) {
	err := s.ready(s.a.starting)
	switch {
	case s.a.starting.Err() != nil:
		return full, nil
	case err != nil:
		return nothing, err
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	tx, taken, messages, err := s.receive(callCtx, slots)
	defer rollback(ctx, tx) // nothing after a commit
	if err != nil || !taken {
		return full, err
	}
	if len(messages) == 0 {
		// Commit all the same: what an empty receive writes, such as that a queue has reached its poison
		// limit, is to last.
		return nothing, tx.Commit(callCtx)
	}
	cancel() // from here on the handler's time counts
	found()

	started := time.Now()
	err = s.handle(ctx, tx, messages)
	s.a.called(ctx, HandlerCalled{
		Queue: s.name, Group: messages[0].Group, Conversation: messages[0].Conversation, Messages: len(messages),
		Waited: max(0, started.Sub(messages[0].EnqueuedAt)), Took: time.Since(started), Err: err,
	})
	if err == nil {
		return worked, nil
	}
	if ctx.Err() != nil {
		return full, nil // the shutdown timeout has passed
	}
	unavailable, isUnavailable := errors.AsType[*unavailableError](err)
	if isUnavailable && !unavailable.counts {
		s.excuse(ctx, tx)
		rollback(ctx, tx)
		return nothing, err
	}
	// Back off first: with the rollback the group is free for others (after a failed statement it is already).
	delay, backoffErr := s.a.backOffGroup(ctx, s.queue, messages[0].Group)
	s.report(ctx, messages, delay, err)
	rollback(ctx, tx)
	if isUnavailable {
		return nothing, err
	}
	return worked, backoffErr
}

// excuse sees to it that the rollback of the transaction does not count as a failure of its messages. What has nobody to
// work on it waits for that however often it is tried.
func (s *goSession) excuse(ctx context.Context, tx pgx.Tx) {
	// One at a time: each takes the place of the entry before its own, which may be about to do the same.
	s.a.excusing.Lock()
	defer s.a.excusing.Unlock()
	ctx, cancel := detach(ctx)
	defer cancel()
	_, err := tx.Exec(ctx, `select sb.excuse_reader(queue_id => @queue_id::integer, pid => pg_catalog.pg_backend_pid())`,
		pgx.StrictNamedArgs{"queue_id": s.queue})
	if err != nil {
		s.a.log.WarnContext(ctx, "what is rolled back counts as failed", "queue", s.name, "error", err)
	}
}

// receive begins a transaction, takes one of so many reader slots for it and, if there is one, receives, all in one
// round trip. The transaction is there whatever the error.
func (s *goSession) receive(ctx context.Context, slots int) (tx pgx.Tx, taken bool, messages []sbroker.Message, err error) {
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{})
	// offset 0 keeps the subqueries apart, so that receive is called after the slot has been taken, and only then.
	batch.Queue(`
select
  t.taken, r.status, r.priority, r.queuing_order, r.conversation_group_id, r.conversation_handle,
  r.message_sequence_number, r.service_name, r.service_id, r.service_contract_name, r.service_contract_id,
  r.message_type_name, r.message_type_id, r.validation, r.message_body, r.message_enqueue_time
from (
  select sb.take_reader(queue_id => @queue_id::integer, max_readers => @max_readers::integer) as taken
  offset 0) as t
left join lateral (
  select * from sb.receive(queue_name => @queue_name::text, max_messages => @max_messages::integer)
  where t.taken
  offset 0) as r on true`,
		pgx.StrictNamedArgs{
			"queue_id": s.queue, "max_readers": slots, "queue_name": string(s.name), "max_messages": s.options.Batch,
		}).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if isEmpty := rows.RawValues()[1] == nil; isEmpty {
				return rows.Scan(&taken, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil)
			}
			var m sbroker.Message
			err := rows.Scan(&taken,
				&m.Status, &m.Priority, &m.QueuingOrder, &m.Group, &m.Conversation,
				&m.SequenceNumber, &m.Service, &m.ServiceID, &m.Contract, &m.ContractID,
				&m.Type, &m.TypeID, &m.Validation, &m.Body, &m.EnqueuedAt)
			if err != nil {
				return err
			}
			m.EnqueuedAt = m.EnqueuedAt.UTC()
			messages = append(messages, m)
		}
		return nil
	})
	results := s.conn.SendBatch(ctx, batch)
	err = results.Close()
	return results.Tx(), taken, messages, err
}

// handle calls the handler and commits.
func (s *goSession) handle(ctx context.Context, tx pgx.Tx, messages []sbroker.Message) error {
	batch := &Batch{
		Queue: s.name, Group: messages[0].Group, Messages: messages,
		Broker: sbroker.New(tx), Tx: handlerTx{tx},
	}
	handlerCtx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	if err := callHandler(handlerCtx, s.handler, batch); err != nil {
		if errors.Is(handlerCtx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("handler timeout of %v: %w", s.options.Timeout, err)
		}
		return err
	}
	if s.conn.Conn().PgConn().TxStatus() == 'I' {
		return errors.New("the handler has ended the transaction by a statement of its own")
	}
	if s.options.AutoEnd {
		if err := autoEnd(handlerCtx, batch); err != nil {
			return err
		}
	}
	if err := s.a.clearBackOff(handlerCtx, tx, batch.Group); err != nil {
		return err
	}
	// Not cut short by a shutdown: nobody could tell then whether it happened.
	commitCtx, cancel := detach(ctx)
	defer cancel()
	if err := tx.Commit(commitCtx); err != nil {
		return err
	}
	s.a.forgetFailure(batch.Group)
	return nil
}

// report logs why a batch was rolled back.
func (s *goSession) report(ctx context.Context, messages []sbroker.Message, delay time.Duration, err error) {
	attrs := []any{
		"queue", s.name, "conversation_group_id", messages[0].Group, "conversation_handle", messages[0].Conversation,
		"message_sequence_number", messages[0].SequenceNumber, "messages", len(messages), "retry_in", delay, "error", err,
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		attrs = append(attrs, "stack", string(p.stack))
	}
	if sbroker.IsRetryable(err) {
		s.a.log.InfoContext(ctx, "handler rolled back, will be retried", attrs...)
	} else {
		s.a.log.ErrorContext(ctx, "handler failed", attrs...)
	}
}

// panicError is a handler's panic.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.value) }

// Unwrap returns what was panicked with if that is an error.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

func callHandler(ctx context.Context, h Handler, b *Batch) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: debug.Stack()}
		}
	}()
	return h.Handle(ctx, b)
}

// autoEnd ends the conversations that the peer, or an error, has ended and the handler has not.
func autoEnd(ctx context.Context, b *Batch) error {
	for _, m := range b.Messages {
		if kind := m.Kind(); kind != sbroker.KindEndDialog && kind != sbroker.KindError {
			continue
		}
		// Nobody else can end it meanwhile: the transaction holds the group.
		var open bool
		err := b.Tx.QueryRow(ctx, `
select exists (
  select from sb.conversation_endpoints as e where e.conversation_handle = @conversation_handle::uuid)`,
			pgx.StrictNamedArgs{"conversation_handle": m.Conversation}).Scan(&open)
		if err == nil && open {
			err = b.Broker.End(ctx, m.Conversation)
		}
		if err != nil {
			return fmt.Errorf("auto end: %w", err)
		}
	}
	return nil
}

// errNotYours is what a handler gets that wants to end the activator's transaction.
var errNotYours = errors.New("activator: the transaction ends when the handler returns: nil commits it, an error rolls it back")

// handlerTx is a transaction that its user cannot end.
type handlerTx struct{ pgx.Tx }

func (handlerTx) Commit(context.Context) error   { return errNotYours }
func (handlerTx) Rollback(context.Context) error { return errNotYours }

// cleanupTimeout bounds what must still be said to the server when the context for it has ended.
const cleanupTimeout = 5 * time.Second

// detach returns a context that outlives ctx for a moment.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}

// rollback ends the transaction if that has not happened yet. A connection that cannot roll back is
// closed by pgx, and the server rolls back.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := detach(ctx)
	defer cancel()
	_ = tx.Rollback(ctx)
}
