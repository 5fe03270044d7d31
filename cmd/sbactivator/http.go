package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/screen"
	"github.com/pgsbroker/sbroker/migrations"
)

const (
	// versionTimeout and figuresTimeout bound what is asked of the database for a probe and for a scrape. Both are worth
	// more when they come in time.
	versionTimeout = 2 * time.Second
	figuresTimeout = 5 * time.Second
	// versionAge and figuresAge are how old an answer may be: whoever asks over HTTP, however often, does not
	// load the database.
	versionAge = time.Second
	figuresAge = 5 * time.Second
	// stallAge is how long the activator may be without an answer about its queues, besides three poll intervals.
	stallAge = 30 * time.Second
)

// serveHTTP answers /healthz, /readyz and /metrics at http.listen until stop is called; with an empty http.listen it
// does nothing. Meanwhile m hears what a does. When ctx ends, /readyz says so.
func serveHTTP(ctx context.Context, config Config, a *activator.Activator, m *metrics, log *slog.Logger) (stop func(), err error) {
	if config.HTTP.Listen == "" {
		return func() {}, nil
	}
	pool, err := askingPool(config.Database)
	if err != nil {
		return nil, &configError{err}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.HTTP.Listen)
	if err != nil {
		pool.Close()
		return nil, configErrorf("http.listen: %w; another address, port 0 for a free port, or an empty one for none", err)
	}
	r := &readiness{
		a: a, stopping: ctx.Done(), pollInterval: config.Activation.PollInterval, pollsOnly: config.Database.Pooler,
		version: cached[int]{age: versionAge, timeout: versionTimeout, ask: func(ctx context.Context) (version int, err error) {
			err = pool.QueryRow(ctx, `select coalesce(b.schema_version, 0) from sb.broker as b`).Scan(&version)
			return version, err
		}},
	}
	scrape := &cached[figures]{age: figuresAge, timeout: figuresTimeout, ask: func(ctx context.Context) (figures, error) {
		return gatherFigures(ctx, pool)
	}}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reasons := r.reasons(); reasons != nil {
			answer(w, http.StatusServiceUnavailable, reasons...)
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	errorLog := slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	mux.Handle("GET /metrics", m.handler(a, scrape, errorLog))
	server := &http.Server{
		Handler: mux, ErrorLog: errorLog, MaxHeaderBytes: 16 << 10,
		ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
	}
	log.Info("listening for HTTP", "address", listener.Addr().String())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("health and metrics are not served any more", "error", err)
		}
	})
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), versionTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // whoever still reads has had his time
		}
		serving.Wait()
		closed := make(chan struct{})
		go func() {
			pool.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-ctx.Done(): // a server that does not answer is not waited for
		}
	}, nil
}

func answer(w http.ResponseWriter, code int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, strings.Join(lines, "\n")+"\n") // the asker may have gone
}

// askingPool is apart from the activator's own connections: a probe that waits for one of those would tell nothing
// about the database. It connects when there is something to ask.
func askingPool(database DatabaseConfig) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(database.URL)
	if err != nil {
		return nil, err // pgx hides the password
	}
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, 2
	config.MaxConnIdleTime = time.Minute
	conn := config.ConnConfig
	conn.ConnectTimeout = versionTimeout
	if conn.ValidateConnect == nil {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite // as the activator does
	}
	conn.RuntimeParams["application_name"] = cmp.Or(conn.RuntimeParams["application_name"], "sbactivator-http") // not as an activator's, which are counted
	if !database.Pooler {
		// What is given up here is not to go on there. A pooler would refuse to be told so.
		conn.RuntimeParams["statement_timeout"] = strconv.FormatInt(figuresTimeout.Milliseconds(), 10)
	}
	return pgxpool.NewWithConfig(context.Background(), config)
}

// cached asks when the last answer is too old, never twice at a time.
type cached[T any] struct {
	age, timeout time.Duration
	ask          func(ctx context.Context) (T, error)

	mu    sync.Mutex
	at    time.Time
	value T
	err   error
}

// get returns the answer, or the error that was got instead of one. Those who come while it is being asked for wait
// for the same answer. It does not depend on the request that asks: others get its answer too.
func (c *cached[T]) get() (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) >= c.age {
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
		defer cancel()
		c.value, c.err = c.ask(ctx)
		c.at = time.Now()
	}
	return c.value, c.err
}

// readiness tells whether the activator can do its work now.
type readiness struct {
	a            *activator.Activator
	stopping     <-chan struct{}
	pollInterval time.Duration
	pollsOnly    bool
	version      cached[int] // of the schema
}

// reasons says in plain words what is in the way, nil when nothing is.
func (r *readiness) reasons() (list []string) {
	status := r.a.Status()
	select {
	case <-r.stopping:
		status.Phase = max(status.Phase, activator.Stopping)
	default:
	}
	if status.Phase >= activator.Stopping {
		running := 0
		for _, q := range status.Queues {
			running += q.Readers
		}
		return []string{fmt.Sprintf("stopping: nothing new is started, %s still at work", screen.Plural(int64(running), "reader"))}
	}
	if status.Phase == activator.Idle {
		list = append(list, "starting: not connected to the database yet")
	}
	version, err := r.version.get()
	switch latest := int(migrations.Latest()); {
	case err != nil:
		list = append(list, explain(err))
	case version < latest: // A newer one is all right: migrations come before the programs that need them.
		list = append(list, fmt.Sprintf("sb has version %d in this database, this program needs %d: run sbactivator migrate up", version, latest))
	}
	if status.Phase != activator.Working {
		return list
	}
	if !status.Listening && !r.pollsOnly {
		list = append(list, "not listening: the connection that hears notifications is down, messages are found by polling only")
	}
	if since := time.Since(status.LookedAt); !status.LookedAt.IsZero() && since > stallAge+3*r.pollInterval {
		list = append(list, fmt.Sprintf("stalled: the queues were last looked at %v ago", since.Round(time.Second)))
	}
	return list
}

// explain says what an error of the database means, without naming host, role or anything else of the connection.
func explain(err error) string {
	pgErr, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case answered && (pgErr.Code == "42P01" || pgErr.Code == "3F000"):
		return "sb is not installed in this database: run sbactivator migrate up"
	case answered && pgErr.Code == "42501":
		return "the role has no rights in sb: an admin has to call sb.grant_admin for it"
	case answered && pgErr.Code == "57014", errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the database does not answer within %v", versionTimeout)
	case answered && !strings.HasPrefix(pgErr.Code, "28"):
		return "the database refuses: " + pgErr.Message
	case answered:
		return "the database refuses the role that logs in"
	default:
		return "the database cannot be reached"
	}
}
