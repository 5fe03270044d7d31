package sbroker

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// ConnectFunc opens a connection straight to the server: not one of a pool that others share, and not
// through a transaction pooler, because LISTEN and the waiting flag belong to the session.
type ConnectFunc func(ctx context.Context) (*pgx.Conn, error)

// ConnectTo returns a ConnectFunc for cfg, which may come from pgx.ParseConfig or from the
// Config().ConnConfig of a pool that connects directly.
func ConnectTo(cfg *pgx.ConnConfig) ConnectFunc {
	return func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, cfg.Copy()) }
}

// ListenerConfig configures a Listener.
type ListenerConfig struct {
	// Connect is required.
	Connect ConnectFunc
	// PollInterval is the longest that a Listener goes without looking, ±20 %; 0 is 5 s. Everything works
	// by polling alone. It is what finds timers and lifetimes that fall due when no activator runs.
	PollInterval time.Duration
	// Logger hears of lost connections; nil is silence.
	Logger *slog.Logger
}

// Validate reports what is missing or out of range.
func (c ListenerConfig) Validate() error {
	switch {
	case c.Connect == nil:
		return errors.New("sbroker: ListenerConfig.Connect is missing")
	case c.PollInterval < 0:
		return errors.New("sbroker: ListenerConfig.PollInterval is negative")
	}
	return nil
}

// Listener waits for messages without a server process that sleeps: it owns one direct connection that
// LISTENs while it waits, and opens it when it first has to. What it waits for is received through the
// caller's own Broker. A Listener is for one goroutine at a time.
//
// A notification is a hint. While the connection cannot be had, a Listener goes on by polling.
type Listener struct {
	cfg   ListenerConfig
	conn  *pgx.Conn // nil until needed and after an error
	armed QueueName // the queue that conn listens and holds the waiting flag for
	fence int64     // see quiet; 0 until taken
	alone bool      // every transaction that may have missed the flag has ended
}

// NewListener returns a Listener. It does not connect yet.
func NewListener(cfg ListenerConfig) (*Listener, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.PollInterval == 0 {
		cfg.PollInterval = 5 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Listener{cfg: cfg}, nil
}

// Close closes the connection, if there is one. The Listener may be used again and then reconnects.
func (l *Listener) Close(ctx context.Context) error {
	if l.conn == nil {
		return nil
	}
	conn := l.conn
	l.conn, l.armed = nil, ""
	return opError("close listener", conn.Close(ctx))
}

// Receive is b.Receive, but waits until there is something. It returns an error when ctx ends, and at
// once when b.Receive fails (the queue is disabled, say). When b works through a transaction, that
// transaction stays open during the wait, in READ COMMITTED without holding back vacuum; when b works
// through a pool, what Receive returns is gone from the queue. To receive, work and commit, use Process.
func (l *Listener) Receive(ctx context.Context, b *Broker, queue QueueName, o ReceiveOptions) ([]Message, error) {
	var messages []Message
	err := l.Wait(ctx, queue, func(ctx context.Context) (bool, error) {
		var err error
		messages, err = b.Receive(ctx, queue, o)
		return len(messages) > 0, err
	})
	if err != nil {
		return nil, err
	}
	return messages, nil
}

// Process waits until there is something to receive and calls fn with it in a transaction of RunTx:
// receive, what fn does and its sends happen together when fn returns nil, or not at all. It returns after
// one batch. fn must be able to run more than once.
func (l *Listener) Process(
	ctx context.Context, db Beginner, queue QueueName, o ReceiveOptions,
	fn func(ctx context.Context, b *Broker, messages []Message) error,
) error {
	return l.Wait(ctx, queue, func(ctx context.Context) (bool, error) {
		found := false
		err := RunTx(ctx, db, func(ctx context.Context, b *Broker) error {
			messages, err := b.Receive(ctx, queue, o)
			if found = len(messages) > 0; err != nil || !found {
				return err
			}
			l.disarm(ctx) // nobody needs to wake one who works
			return fn(ctx, b, messages)
		})
		return found, err
	})
}

const (
	firstLook = 5 * time.Millisecond   // after the flag went up; doubles with every look
	lostLook  = 250 * time.Millisecond // after a notification that led to nothing; doubles too
	slowLook  = time.Second            // from here on it pays to ask whether looking makes sense
)

// Wait calls look until it reports true, and sleeps in between for as long as nothing can have changed. It
// returns the error of look as it is, and an error when ctx ends or the server refuses to let it listen.
// look receives from the queue, each time with a new snapshot, and must not use the Listener.
func (l *Listener) Wait(ctx context.Context, queue QueueName, look func(ctx context.Context) (bool, error)) error {
	if done, err := look(ctx); done || err != nil {
		return err
	}
	defer func() { l.disarm(ctx) }()
	pause := firstLook
	var ask time.Time // not before
	for {
		if l.armed != queue {
			// Listen and raise the flag first, then look: what commits after the look notifies.
			if err := l.arm(ctx, queue); err == nil {
				pause = firstLook
			} else if ctx.Err() != nil || isRefusal(err) {
				return err
			} else {
				l.cfg.Logger.WarnContext(ctx, "listener works by polling", "queue", queue, "error", err)
			}
		}
		if done, err := look(ctx); done || err != nil {
			return err
		}
		wait := pause
		if l.armed == queue && pause >= slowLook {
			wait = slowLook
			if began := time.Now(); began.After(ask) {
				quiet, err := l.quiet(ctx, queue)
				if err != nil {
					l.drop(ctx, err)
					continue
				}
				if quiet {
					wait = l.cfg.PollInterval
				}
				// The question is dear in a database full of messages; it must not become a load.
				ask = time.Now().Add(20 * time.Since(began))
			}
		}
		notified, err := l.sleep(ctx, jitter(min(wait, l.cfg.PollInterval)))
		if err != nil {
			return err
		}
		if pause = min(2*pause, l.cfg.PollInterval); notified {
			pause = lostLook // unless this look finds what it was about
		}
	}
}

// arm makes the connection listen for the queue and raises the waiting flag.
func (l *Listener) arm(ctx context.Context, queue QueueName) error {
	l.disarm(ctx) // another queue's
	// A server that does not answer must not keep look from being called.
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	if l.conn == nil {
		conn, err := l.cfg.Connect(ctx)
		if err != nil {
			return opError("connect listener", err)
		}
		l.conn = conn
		// What is asked on this connection is short or not worth the wait.
		if _, err := conn.Exec(ctx, "set statement_timeout = '2s'"); err != nil {
			err = opError("listen", err)
			l.drop(ctx, err)
			return err
		}
	}
	b := New(l.conn)
	id, err := value[int32](ctx, b, "listen", `
select q.queue_id from sb.service_queues as q where q.name = @queue_name::text`,
		args{"queue_name": string(queue)})
	if errors.Is(err, pgx.ErrNoRows) {
		return &Error{
			Op: "listen", Code: CodeQueueNotFound,
			Message: "queue " + strconv.Quote(string(queue)) + " does not exist", err: err,
		}
	}
	if err == nil {
		// LISTEN takes no parameters; the name is built from a number.
		_, err = l.conn.Exec(ctx, "listen sb_queue_"+strconv.Itoa(int(id)))
		err = opError("listen", err)
	}
	if err == nil {
		err = b.StartWaiting(ctx, queue)
	}
	if err != nil {
		l.drop(ctx, err)
		return err
	}
	l.armed, l.fence, l.alone = queue, 0, false
	return nil
}

// disarm lowers the flag and stops listening, so that nobody pays for notifications that nobody waits
// for, and none pile up on a connection that is not being read. It works after ctx has ended.
func (l *Listener) disarm(ctx context.Context) {
	if l.armed == "" {
		return
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	err := New(l.conn).StopWaiting(ctx, l.armed)
	if err == nil {
		_, err = l.conn.Exec(ctx, "unlisten *")
	}
	l.armed = ""
	if err != nil {
		l.drop(ctx, err)
	}
}

// drop gives up the connection; its end releases the flag.
func (l *Listener) drop(ctx context.Context, cause error) {
	if ctx.Err() == nil {
		l.cfg.Logger.WarnContext(ctx, "listener connection lost", "error", cause)
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	_ = l.Close(ctx)
}

// quiet reports whether only a notification, a timer or a lifetime can bring something to receive. Two
// things come without: messages of senders that looked for the flag before it was up, and rows that
// somebody holds, with the end of his transaction. It also proves the connection alive.
func (l *Listener) quiet(ctx context.Context, queue QueueName) (quiet bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	b := New(l.conn)
	if l.fence == 0 {
		// A sender looks for the flag after its insert. Whoever did so before the flag was up has an
		// older transaction id than this one.
		l.fence, err = value[int64](ctx, b, "listen", `select pg_catalog.pg_current_xact_id()::text::bigint`, nil)
		if err != nil {
			return false, err
		}
	}
	if !l.alone {
		l.alone, err = value[bool](ctx, b, "listen", `
select pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text::bigint > @fence::bigint`,
			args{"fence": l.fence})
		if err != nil || !l.alone {
			return false, err
		}
	}
	quiet, err = value[bool](ctx, b, "listen", `
select not exists (
  select from sb.queue_messages as m where m.queue_name = @queue_name::text and m.status = 1)`,
		args{"queue_name": string(queue)})
	if errors.Is(err, codeQueryCanceled) {
		return false, nil // so many messages that it took too long
	}
	return quiet, err
}

// sleep returns after d, or earlier when a notification comes or the connection breaks. Its error is that
// of ctx.
func (l *Listener) sleep(ctx context.Context, d time.Duration) (notified bool, err error) {
	if l.armed == "" {
		if !sleep(ctx, d) {
			return false, opError("wait", ctx.Err())
		}
		return false, nil
	}
	nap, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_, err = l.conn.WaitForNotification(nap) // a timeout leaves the connection usable
	switch {
	case ctx.Err() != nil:
		return false, opError("wait", ctx.Err())
	case err == nil:
		return true, nil
	case nap.Err() == nil:
		l.drop(ctx, err)
	}
	return false, nil
}

// codeQueryCanceled is what statement_timeout raises.
const codeQueryCanceled Code = "57014"

// isRefusal tells an answer of the server that will not change by itself from a connection that may come
// back.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code != "" && e.Code != codeQueryCanceled && !IsRetryable(err)
}
