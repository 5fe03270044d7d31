package activator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgsbroker/sbroker/sbroker"
)

// frozenTimeout is how long the server waits for our next statement before it gives us up, where we have nothing to wait for.
const frozenTimeout = 10 * time.Second

// sqlRunner runs a queue's activation procedure, or program. Its connections serve this queue and this role only,
// so that nothing a procedure leaves behind in its session (settings, temporary objects) meets code of another role.
type sqlRunner struct {
	a           *Activator
	queue       int32
	name        sbroker.QueueName
	procedure   string // as the queue has it
	statement   string // what runs it, quoted by the server
	isProcedure bool
	executeAs   string
	program     *ProgramOptions // what to run instead of a procedure
	log         *slog.Logger

	mu     sync.Mutex
	idle   []*sqlSession
	closed bool
}

// serves reports whether r does what the plan asks for.
func (r *sqlRunner) serves(p plannedQueue) bool {
	return r.procedure == p.Procedure && r.statement == p.Statement && r.isProcedure == p.IsProcedure && r.executeAs == p.ExecuteAs
}

func (r *sqlRunner) describe() (procedure, executeAs string) { return r.procedure, r.executeAs }

func (r *sqlRunner) open(ctx context.Context) (session, error) {
	if s := r.reuse(); s != nil {
		return s, nil
	}
	config := r.a.direct.Copy()
	// The session is not ours alone: a procedure may discard what we prepared.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { r.notice(n) }
	if r.program != nil {
		watchable(config)
	} else {
		// We leave no session waiting. One whose client is frozen would hold group and slot as long as that is.
		config.RuntimeParams["idle_in_transaction_session_timeout"] = milliseconds(frozenTimeout)
		config.RuntimeParams["idle_session_timeout"] = milliseconds(r.a.cfg.IdleTimeout + frozenTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	move := r.a.moves.Load()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &sqlSession{sqlRunner: r, conn: conn, move: move}, nil
}

// what names what is run, for errors.
func (r *sqlRunner) what() string {
	if r.program != nil {
		return r.procedure
	}
	return "activation procedure " + r.procedure + " as " + r.executeAs
}

// reuse returns a connection that an earlier reader has left.
func (r *sqlRunner) reuse() *sqlSession {
	r.tidy(time.Now()) // the server may have ended those that are too old
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.idle) - 1
	if last < 0 {
		return nil
	}
	s := r.idle[last]
	r.idle = r.idle[:last]
	return s
}

// keep leaves the connection for another reader, until tidy finds it too old, and reports whether it has.
func (r *sqlRunner) keep(s *sqlSession) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.a.cfg.IdleTimeout == 0 {
		return false
	}
	s.idleSince = time.Now()
	r.idle = append(r.idle, s)
	return true
}

// doubt gives up all connections that are kept.
func (r *sqlRunner) doubt() {
	r.mu.Lock()
	all := r.idle
	r.idle = nil
	r.mu.Unlock()
	for _, s := range all {
		s.hangUp()
	}
}

func (r *sqlRunner) tidy(now time.Time) {
	r.mu.Lock()
	keep, old := r.idle[:0:0], r.idle[:0:0]
	for _, s := range r.idle {
		if r.closed || s.move != r.a.moves.Load() || now.Sub(s.idleSince) > r.a.cfg.IdleTimeout {
			old = append(old, s)
		} else {
			keep = append(keep, s)
		}
	}
	r.idle = keep
	r.mu.Unlock()
	for _, s := range old {
		s.hangUp()
	}
}

func (r *sqlRunner) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.tidy(time.Now())
}

// notice logs what RAISE NOTICE and the like put out; nobody else would see it. What a server says that is about to
// end every session (57P01, 57P02) is noticed otherwise.
func (r *sqlRunner) notice(n *pgconn.Notice) {
	if strings.HasPrefix(n.Code, "57P") {
		return
	}
	level := slog.LevelInfo
	if n.SeverityUnlocalized == "WARNING" {
		level = slog.LevelWarn
	}
	r.log.Log(context.Background(), level, n.Message, "severity", n.SeverityUnlocalized, "code", n.Code, "detail", n.Detail)
}

type sqlSession struct {
	*sqlRunner
	conn      *pgx.Conn
	move      int64 // the activator's moves when it was opened
	idleSince time.Time

	called bool  // within this reader
	before probe // what was there before the last call
}

// probe is what a receive would find: see sb.probe_queue.
type probe struct {
	head, receives *int64
	waited         *float64 // seconds
}

// errNotReceived says that a procedure or program has left alone what was there: one without RECEIVE, or
// one that hides its errors. Calling it again at once would be a hot loop.
type errNotReceived struct {
	what     string
	receives *int64 // the counter after the call
	others   bool   // somebody has received meanwhile
}

func (e *errNotReceived) Error() string {
	return e.what + " has ended without receiving what is there"
}

func (s *sqlSession) pid() uint32 { return s.conn.PgConn().PID() }

func (s *sqlSession) close(failed bool) {
	s.called = false
	if !failed && !s.conn.IsClosed() && s.reset() == nil && s.keep(s) {
		return
	}
	if s.conn.IsClosed() {
		s.doubt() // those that are idle have hardly fared better
	}
	s.hangUp()
}

// reset makes the session as new. It also gives up a reader slot held at session level.
func (s *sqlSession) reset() error {
	ctx, cancel := detach(context.Background())
	defer cancel()
	_, err := s.conn.Exec(ctx, "discard all")
	return err
}

func (s *sqlSession) hangUp() {
	ctx, cancel := detach(context.Background())
	defer cancel()
	_ = s.conn.Close(ctx) // the server notices in any case
}

func (s *sqlSession) step(ctx context.Context, slots int, found func()) (outcome, error) {
	if s.program != nil {
		return s.runProgram(ctx, slots, found)
	}
	if s.isProcedure {
		return s.callProcedure(ctx, slots, found)
	}
	return s.callFunction(ctx, slots, found)
}

// callFunction calls the function once, in a transaction of its own.
func (s *sqlSession) callFunction(ctx context.Context, slots int, found func()) (outcome, error) {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	tx, err := s.conn.Begin(callCtx)
	if err != nil {
		return nothing, err
	}
	defer rollback(ctx, tx)
	if out, err := s.prepare(callCtx, tx, slots, found); out != worked || err != nil {
		return out, err
	}
	if err := s.enterRole(callCtx, tx, true); err != nil {
		return nothing, err
	}
	cancel()
	return s.observe(ctx, func() error {
		// The server ends the statement in time; the context is for a server that does not answer.
		ctx, cancel := context.WithTimeout(ctx, s.a.cfg.HandlerTimeout+cleanupTimeout)
		defer cancel()
		if _, err := tx.Exec(ctx, s.statement); err != nil {
			return err
		}
		ctx, cancel = detach(ctx)
		defer cancel()
		return tx.Commit(ctx)
	})
}

// forSession reports whether the slot belongs to the session, not to one transaction.
func (s *sqlSession) forSession() bool { return s.isProcedure || s.program != nil }

// callProcedure calls the procedure once, outside a transaction, so that it may commit. Slot and role belong to
// the session meanwhile, for a commit within would end them. Afterwards the session is made as new.
func (s *sqlSession) callProcedure(ctx context.Context, slots int, found func()) (outcome, error) {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if out, err := s.prepare(callCtx, s.conn, slots, found); out != worked || err != nil {
		return out, errors.Join(err, s.resetUnless(err))
	}
	if err := s.enterRole(callCtx, s.conn, false); err != nil {
		return nothing, err
	}
	cancel()
	out, err := s.observe(ctx, func() error {
		_, err := s.conn.Exec(ctx, s.statement)
		return err
	})
	return out, errors.Join(err, s.resetUnless(err))
}

// resetUnless resets the session if it is to be used again.
func (s *sqlSession) resetUnless(err error) error {
	if err != nil {
		return nil
	}
	return s.reset()
}

// prepare takes a reader slot and looks whether the last call has received and there is anything to call for.
func (s *sqlSession) prepare(ctx context.Context, db sbroker.DBTX, slots int, found func()) (outcome, error) {
	taken, err := takeReader(ctx, db, s.queue, slots, s.forSession())
	if err != nil || !taken {
		return full, err
	}
	var now probe
	err = db.QueryRow(ctx, `
select p.head, p.receives, p.waited from sb.probe_queue(queue_id => @queue_id::integer) as p`,
		pgx.StrictNamedArgs{"queue_id": s.queue}).Scan(&now.head, &now.receives, &now.waited)
	if err != nil {
		return nothing, err
	}
	if s.called { // what came of it?
		others := now.receives != nil && s.before.receives != nil && *now.receives != *s.before.receives
		if now.head != nil && (*now.head == *s.before.head || now.receives != nil && !others) {
			return nothing, &errNotReceived{what: s.what(), receives: now.receives, others: others}
		}
		found()
	}
	if now.head == nil {
		return nothing, nil
	}
	s.called, s.before = true, now
	return worked, nil
}

// enterRole makes the queue's role the current one and, within a transaction, limits the time.
func (s *sqlSession) enterRole(ctx context.Context, db sbroker.DBTX, local bool) error {
	_, err := db.Exec(ctx, `select pg_catalog.set_config('role', @role::text, @local::boolean)`,
		pgx.StrictNamedArgs{"role": s.executeAs, "local": local})
	if err != nil {
		return fmt.Errorf("execute as %s: %w", s.executeAs, err)
	}
	if local {
		_, err = db.Exec(ctx, `select pg_catalog.set_config('statement_timeout', @timeout::text, true)`,
			pgx.StrictNamedArgs{"timeout": milliseconds(s.a.cfg.HandlerTimeout)})
	}
	return err
}

// observe runs one call.
func (s *sqlSession) observe(ctx context.Context, call func() error) (outcome, error) {
	started := time.Now()
	err := call()
	if err == nil && s.conn.PgConn().TxStatus() != 'I' {
		err = errors.New("the activation procedure has left a transaction open")
	}
	event := HandlerCalled{Queue: s.name, Procedure: s.procedure, Took: time.Since(started), Err: err}
	if s.before.waited != nil {
		event.Waited = time.Duration(*s.before.waited * float64(time.Second))
	}
	s.a.called(ctx, event)
	if err != nil {
		if ctx.Err() != nil {
			return full, err // the shutdown timeout has passed
		}
		return nothing, fmt.Errorf("%s: %w", s.what(), err)
	}
	return worked, nil
}
