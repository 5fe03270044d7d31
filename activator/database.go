package activator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/sbroker"
)

// ErrCannotStart is what Run returns, wrapped, when it has not begun to work: the database cannot be reached or
// used in the time given, or the configuration does not fit it.
var ErrCannotStart = errors.New("activator: cannot start")

// oldestSchema is the version of sb that brought the newest of the functions called here.
const oldestSchema = 3

// networkTimeout is how long the other side of a connection may leave unanswered what TCP expects it to answer.
const networkTimeout = 5 * time.Second

// poolConfig returns how to connect to the database, for everything but LISTEN.
func (c Config) poolConfig() (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(c.DatabaseURL)
	if err != nil {
		return nil, err // pgx hides the password
	}
	conn := pool.ConnConfig
	if conn.ValidateConnect == nil {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = 5 * time.Second
	}
	// A lost host is noticed within 10 s, by the server, which then frees what the session held, and by us: nothing for
	// networkTimeout, and as long again where something is said just before that to which there is no answer.
	conn.DialFunc = (&net.Dialer{
		Timeout:         conn.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: networkTimeout - 2*time.Second, Interval: time.Second, Count: 2},
		Control:         func(_, _ string, c syscall.RawConn) error { return limitSilence(c, networkTimeout) },
	}).DialContext
	settings := map[string]string{
		"tcp_keepalives_idle":     "3",
		"tcp_keepalives_interval": "1",
		"tcp_keepalives_count":    "2",
		"tcp_user_timeout":        milliseconds(networkTimeout),
	}
	if c.Pooler {
		clear(settings) // it would refuse them
	}
	settings["application_name"] = "sbactivator " + c.Name
	for name, value := range settings {
		if _, set := conn.RuntimeParams[name]; !set {
			conn.RuntimeParams[name] = value
		}
	}
	// When a context ends, ask the server to stop; give the connection up only when it does not.
	conn.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cleanupTimeout}
	}
	return pool, nil
}

// connect opens the pools, once the database can be reached.
func (a *Activator) connect(ctx context.Context) error {
	config, err := a.cfg.poolConfig()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCannotStart, err)
	}
	a.direct = config.ConnConfig
	if err := a.preflight(ctx); err != nil {
		return err
	}
	a.direct = config.ConnConfig.Copy()

	// The activator's own calls must not wait for handlers.
	control := config.Copy()
	control.MinConns, control.MinIdleConns, control.MaxConns = 0, 0, 3
	if a.control, err = pgxpool.NewWithConfig(ctx, control); err != nil {
		return fmt.Errorf("%w: %w", ErrCannotStart, err)
	}
	// The first answer also tells whether the role has the rights.
	if _, err := a.plan(ctx); err != nil && !isOutage(err) {
		a.control.Close()
		return fmt.Errorf("%w: %w", ErrCannotStart, err)
	}
	timeout := time.Duration(0)
	for _, h := range a.handlers {
		timeout = max(timeout, h.options.Timeout)
	}
	// A handler that hangs outside the database does not notice its timeout, but the server ends its session.
	if !a.cfg.Pooler {
		config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = milliseconds(timeout + cleanupTimeout)
	}
	// Connections are opened as readers need them, so that without a size of its own the reader limits are the pool's.
	config.MaxConns = cmp.Or(int32(a.cfg.PoolSize), maxReaders)
	config.MinConns, config.MinIdleConns = 0, 0
	config.MaxConnIdleTime = max(time.Minute, a.cfg.IdleTimeout)
	if a.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		a.control.Close()
		return fmt.Errorf("%w: %w", ErrCannotStart, err)
	}
	return nil
}

// milliseconds is d as a setting of the server.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, min(d.Milliseconds(), math.MaxInt32)), 10)
}

// preflight waits for the database and looks whether it is one that the activator can work with.
func (a *Activator) preflight(ctx context.Context) error {
	deadline := time.Now().Add(a.cfg.StartupTimeout)
	for attempt := 1; ; attempt++ {
		err := a.examine(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if hasCode(err, "08P01") && !a.cfg.Pooler { // so PgBouncer calls a setting that it does not know
			return fmt.Errorf("%w: through a pooler in transaction mode that has to be configured: %w", ErrCannotStart, err)
		}
		pause := min(backoff(attempt), jitter(maxReconnect))
		if !isOutage(err) || time.Now().Add(pause).After(deadline) {
			return fmt.Errorf("%w: %w", ErrCannotStart, err)
		}
		a.outage(err)
		if !wait(ctx, pause, nil) {
			return ctx.Err()
		}
	}
}

func (a *Activator) examine(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, a.direct.Copy())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := detach(ctx)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	var installed bool
	err = conn.QueryRow(ctx, `
select r.rolsuper, pg_catalog.to_regnamespace('sb') is not null
from pg_catalog.pg_roles as r
where r.rolname = current_user`).Scan(&a.isSuperuser, &installed)
	if err != nil {
		return err
	}
	if !installed {
		return errors.New("sb is not installed in this database; run sbactivator migrate up")
	}
	var version int
	err = conn.QueryRow(ctx, `select coalesce(b.schema_version, 0) from sb.broker as b`).Scan(&version)
	switch {
	case err == nil && version < oldestSchema:
		return fmt.Errorf("sb has version %d in this database, the activator needs %d; run sbactivator migrate up", version, oldestSchema)
	case err != nil && !hasCode(err, "42501"): // who has no rights is told so by the plan
		return err
	}
	if a.cfg.Pooler {
		return nil
	}
	// A server that can look for the client while it runs a statement gives free what a killed activator
	// has locked, however long the statement takes. Not every platform can, and then it refuses.
	const check, every = "client_connection_check_interval", "2s"
	if _, err := conn.Exec(ctx, `select pg_catalog.set_config($1, $2, false)`, check, every); err == nil {
		a.direct.RuntimeParams[check] = every
	}
	return nil
}

// isOutage tells a database that cannot be reached or has gone away from one that refuses. It is for what the
// activator itself does: a handler's own network errors look the same.
func isOutage(err error) bool {
	if hasCode(err, "25006") {
		return true // read-only: the heartbeat is about to find out that it is another server's turn
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return sbroker.IsRetryable(err) && !hasCode(err, "40001") && !hasCode(err, "40P01")
	}
	_, isNet := errors.AsType[net.Error](err)
	return isNet || sbroker.IsRetryable(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded)
}

// hasCode reports whether the server has raised the code, whoever had asked it.
func hasCode(err error, code sbroker.Code) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && sbroker.Code(pgErr.Code) == code
}

// plannedQueue is a row of sb.activation_plan.
type plannedQueue struct {
	ID          int32
	Name        sbroker.QueueName
	IsOn        bool
	MaxReaders  int // -1 where the queue has none
	Surplus     int
	Procedure   string // empty: none, or activation is off
	Version     string
	IsProcedure bool
	Statement   string // empty: the procedure does not exist
	ExecuteAs   string
	MayBecome   bool // the role in ExecuteAs exists, and we may SET ROLE to it
}

// plan asks what there is to serve.
func (a *Activator) plan(ctx context.Context) ([]plannedQueue, error) {
	names := make([]string, 0, len(a.handlers))
	for name := range a.handlers {
		names = append(names, string(name))
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := a.control.Query(ctx, `
select p.queue_id, p.queue_name, p.is_on, coalesce(p.max_readers, -1), p.surplus_readers,
       coalesce(p.procedure_name, ''), coalesce(p.procedure_version, ''), coalesce(p.is_procedure, false),
       coalesce(p.statement, ''), coalesce(p.execute_as, ''), p.may_become
from sb.activation_plan(queue_names => @queue_names::text[]) as p`,
		pgx.StrictNamedArgs{"queue_names": names})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[plannedQueue])
}

// scan is a row of sb.activation_scan.
type scan struct {
	ID       int32
	IsOn     bool
	HasReady bool
	DueIn    *float64 // seconds
	Receives int64
}

// scan looks at queues, and before that at who is writing: those of the writers that are missing next
// time had committed before that look.
func (a *Activator) scan(ctx context.Context, queues []int32) (scans []scan, writers []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	batch := &pgx.Batch{}
	batch.Queue(`select sb.queue_writers()`).QueryRow(func(row pgx.Row) error { return row.Scan(&writers) })
	batch.Queue(`
select s.queue_id, s.is_on, s.has_ready, s.due_in, s.receives
from sb.activation_scan(queue_ids => @queue_ids::integer[]) as s`,
		pgx.StrictNamedArgs{"queue_ids": queues}).Query(func(rows pgx.Rows) error {
		scans, err = pgx.CollectRows(rows, pgx.RowToStructByPos[scan])
		return err
	})
	err = a.control.SendBatch(ctx, batch).Close()
	return scans, writers, err
}

// backOffGroup makes receive leave the group alone for the time returned. It must happen before the
// rollback gives the group free, thus on another connection.
func (a *Activator) backOffGroup(ctx context.Context, queue int32, group sbroker.GroupID) (time.Duration, error) {
	a.mu.Lock()
	a.failing[group] = time.Now()
	m := a.monitors[queue]
	a.mu.Unlock()
	ctx, cancel := detach(ctx)
	defer cancel()
	var delay time.Duration
	err := a.control.QueryRow(ctx, `select sb.back_off_group(conversation_group_id => @conversation_group_id::uuid)`,
		pgx.StrictNamedArgs{"conversation_group_id": group}).Scan(&delay)
	if err == nil && m != nil {
		m.retryIn(delay)
		a.cfg.Observer.Observe(BackedOff{Queue: m.name, Group: group, For: delay})
	}
	return delay, err
}

// clearBackOff forgets, with the transaction, that the group had failed before.
func (a *Activator) clearBackOff(ctx context.Context, db sbroker.DBTX, group sbroker.GroupID) error {
	a.mu.Lock()
	_, failing := a.failing[group]
	a.mu.Unlock()
	if !failing {
		return nil
	}
	_, err := db.Exec(ctx, `select sb.clear_back_off(conversation_group_id => @conversation_group_id::uuid)`,
		pgx.StrictNamedArgs{"conversation_group_id": group})
	return err
}

// forgetFailures drops what is too old to matter: after a minute sb itself begins anew.
func (a *Activator) forgetFailures() {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.failing, func(_ sbroker.GroupID, at time.Time) bool { return time.Since(at) > 10*time.Minute })
}

// forgetFailure follows when that transaction has been committed.
func (a *Activator) forgetFailure(group sbroker.GroupID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.failing, group)
}
