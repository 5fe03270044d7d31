package activator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/pgsbroker/sbroker/sbroker"
)

const (
	heartbeat     = networkTimeout + time.Second // a connection over which nothing came for so long is asked
	heartbeatWait = 4 * time.Second              // and given up when it does not answer
	maxReconnect  = 2 * time.Second              // so that an outage is over within 5 s of its end
)

// listener owns the one connection that hears notifications and holds the waiting flags: outside every
// pool, because both belong to the session. One goroutine uses it.
type listener struct {
	a *Activator

	mu        sync.Mutex
	interrupt context.CancelFunc // of the wait for a notification
	poked     bool
}

// poke makes the listener look at what the monitors want.
func (l *listener) poke() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poked = true
	if l.interrupt != nil {
		l.interrupt()
	}
}

// run keeps a connection until ctx ends.
func (l *listener) run(ctx context.Context) {
	for attempt := 1; ; attempt++ {
		listened, err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		l.a.outage(err)
		if listened {
			attempt = 1
		}
		if !wait(ctx, min(backoff(attempt), jitter(maxReconnect)), nil) {
			return
		}
	}
}

// listen connects, makes everything look again that may have changed meanwhile, and hears notifications until the
// connection fails; listened reports whether it got so far.
func (l *listener) listen(ctx context.Context) (listened bool, err error) {
	config := l.a.direct.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.RuntimeParams["application_name"] += " listener"
	// The wait for a notification is interrupted all the time: by a deadline of ours, without asking the server.
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}
	}
	connectCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connectCtx, config)
	if err != nil {
		return false, err
	}
	s := &listening{l: l, conn: conn, channels: map[int32]bool{}, flags: map[int32]sbroker.QueueName{}}
	defer s.end()
	if err := s.exec(ctx, "listen sb_events"); err != nil {
		return false, err
	}
	if err := s.serve(ctx); err != nil {
		return false, err
	}
	l.a.listens(true)
	for ctx.Err() == nil {
		if err := s.lead(ctx); err != nil {
			return true, err
		}
		if err := s.wait(ctx); err != nil {
			return true, err
		}
		if err := s.serve(ctx); err != nil {
			return true, err
		}
	}
	return true, ctx.Err()
}

// listening is one connection of the listener.
type listening struct {
	l        *listener
	conn     *pgx.Conn
	channels map[int32]bool              // queues listened to
	flags    map[int32]sbroker.QueueName // queues whose waiting flag is up
	heard    time.Time                   // when the server last gave a sign of life
	leads    bool                        // this activator keeps house
	askedAt  time.Time                   // when it last tried to be the one that does
}

func (s *listening) end() {
	ctx, cancel := detach(context.Background())
	defer cancel()
	s.l.a.forwarder.leads.Store(false)
	_ = s.conn.Close(ctx) // which lowers the flags
	for id := range s.flags {
		if m := s.l.a.monitor(id); m != nil {
			m.flagged(false)
		}
	}
	s.l.a.listens(false)
}

// lead makes this activator the one that keeps house, unless another one does: that is whose session has the lock.
func (s *listening) lead(ctx context.Context) error {
	if s.leads || time.Since(s.askedAt) < maintainInterval/4 {
		return nil
	}
	s.askedAt = time.Now()
	ctx, cancel := context.WithTimeout(ctx, heartbeatWait)
	defer cancel()
	err := s.conn.QueryRow(ctx, `select pg_catalog.pg_try_advisory_lock(8421, 0)`).Scan(&s.leads)
	if err == nil && s.leads {
		s.l.a.forwarder.leads.Store(true)
	}
	return err
}

func (s *listening) exec(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatWait)
	defer cancel()
	_, err := s.conn.Exec(ctx, sql)
	if err == nil {
		s.heard = time.Now()
	}
	return err
}

// serve listens to the queues there are, and raises and lowers waiting flags as the monitors wish.
func (s *listening) serve(ctx context.Context) error {
	s.l.mu.Lock()
	s.l.poked = false
	s.l.mu.Unlock()
	monitors := s.l.a.allMonitors()
	gone := s.channels
	s.channels = make(map[int32]bool, len(monitors))
	for _, m := range monitors {
		if !gone[m.id] {
			// LISTEN takes no parameters; the name is made of a number.
			if err := s.exec(ctx, "listen sb_queue_"+strconv.Itoa(int(m.id))); err != nil {
				return err
			}
			m.lookNow() // what was sent before is not announced
		}
		delete(gone, m.id)
		s.channels[m.id] = true
	}
	for id := range gone {
		if err := s.exec(ctx, "unlisten sb_queue_"+strconv.Itoa(int(id))); err != nil {
			return err
		}
		if err := s.lower(ctx, id); err != nil {
			return err
		}
	}
	for _, m := range monitors {
		want, up := m.flagState()
		switch {
		case want && !up:
			if err := s.raise(ctx, m); err != nil {
				return err
			}
		case !want:
			if err := s.lower(ctx, m.id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *listening) raise(ctx context.Context, m *monitor) error {
	if _, up := s.flags[m.id]; !up {
		callCtx, cancel := context.WithTimeout(ctx, heartbeatWait)
		defer cancel()
		err := sbroker.New(s.conn).StartWaiting(callCtx, m.name)
		if isRefusal(err) {
			m.flagged(false) // dropped or disabled this moment: the next look tells
			return nil
		}
		if err != nil {
			return err
		}
		s.flags[m.id] = m.name
	}
	m.flagged(true)
	return nil
}

func (s *listening) lower(ctx context.Context, id int32) error {
	name, up := s.flags[id]
	if !up {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, heartbeatWait)
	defer cancel()
	err := sbroker.New(s.conn).StopWaiting(ctx, name)
	if isRefusal(err) {
		// A queue that is dropped cannot be named any more, and its flag does no harm.
		err = nil
	}
	if err == nil {
		delete(s.flags, id)
	}
	return err
}

// isRefusal tells an answer of the server from a lost connection.
func isRefusal(err error) bool {
	_, answered := errors.AsType[*pgconn.PgError](err)
	return answered && !sbroker.IsRetryable(err)
}

// wait hears one notification, or proves that the connection is alive, or is interrupted.
func (s *listening) wait(ctx context.Context) error {
	napCtx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	s.l.mu.Lock()
	s.l.interrupt = cancel
	poked := s.l.poked
	s.l.mu.Unlock()
	defer func() {
		s.l.mu.Lock()
		s.l.interrupt = nil
		s.l.mu.Unlock()
	}()
	if !poked {
		n, err := s.conn.WaitForNotification(napCtx)
		switch {
		case err == nil:
			s.heard = time.Now()
			s.l.a.heard(n)
		case napCtx.Err() == nil:
			return err
		}
	}
	if ctx.Err() == nil && time.Since(s.heard) >= heartbeat {
		return s.beat(ctx)
	}
	return nil
}

// beat asks the server whether it is still there and still the one to work with. Without traffic neither
// side would notice that the connection is gone.
func (s *listening) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatWait)
	defer cancel()
	var isReadOnly bool
	err := s.conn.QueryRow(ctx, `
select pg_catalog.pg_is_in_recovery() or pg_catalog.current_setting('transaction_read_only')::boolean`).Scan(&isReadOnly)
	if err != nil {
		return fmt.Errorf("no answer to the heartbeat: %w", err)
	}
	if isReadOnly {
		// It is another server's turn; everything has to find that one too.
		s.l.a.moves.Add(1)
		s.l.a.pool.Reset()
		s.l.a.control.Reset()
		return errors.New("the server has become read-only")
	}
	s.heard = time.Now()
	return nil
}

// heard passes a notification on.
func (a *Activator) heard(n *pgconn.Notification) {
	if a.deaf {
		return
	}
	if id, ok := strings.CutPrefix(n.Channel, "sb_queue_"); ok {
		if id, err := strconv.ParseInt(id, 10, 32); err == nil {
			if m := a.monitor(int32(id)); m != nil {
				a.cfg.Observer.Observe(Notified{Queue: m.name})
				m.notify()
			}
		}
		return
	}
	a.cfg.Observer.Observe(Notified{})
	var event struct {
		Event string            `json:"event"`
		Queue sbroker.QueueName `json:"queue"`
		Cause string            `json:"cause"`
	}
	// Whatever else it may be, something has changed.
	_ = json.Unmarshal([]byte(n.Payload), &event)
	switch {
	case event.Event == "transmission_waiting":
		a.forwarder.poke()
		return
	case event.Event == "queue_disabled" && event.Cause == "poison": // else somebody has stopped it on purpose
		a.log.Warn("poison message handling has disabled a queue", "queue", event.Queue)
		a.cfg.Observer.Observe(QueueDisabled{Queue: event.Queue})
	}
	a.scheduler.replan()
}

// listens takes note of whether there is a connection that hears notifications.
func (a *Activator) listens(up bool) {
	a.mu.Lock()
	was := a.isHearing
	a.isHearing = up
	a.mu.Unlock()
	if was != up {
		a.cfg.Observer.Observe(Listening{Up: up})
	}
	if up {
		a.recovered()
		a.scheduler.sweep()
	}
}
