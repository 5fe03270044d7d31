package activator_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
)

func TestMain(m *testing.M) {
	playRole()
	activator.LimitAnswers(1 << 20)
	pgtest.Main(m)
}

func connect(ctx context.Context, url string) (*pgxpool.Pool, error) { return pgxpool.New(ctx, url) }

// stage is a database with the services "client" and "server", each with a queue of the same name, and a
// role for activators that is an admin but neither owner nor superuser.
type stage struct {
	t    testing.TB
	db   *pgtest.DB
	pool *pgxpool.Pool // of the owner
	b    *sbroker.Broker
	role string
}

func newStage(t testing.TB) *stage {
	t.Helper()
	s := &stage{t: t, db: pgtest.New(t)}
	s.pool = s.db.Pool(t)
	s.b = sbroker.New(s.pool)
	s.role = s.db.CreateRole(t, "activator")
	s.exec("select sb.grant_admin($1)", s.role)
	for _, name := range []string{"client", "server"} {
		s.exec("select sb.create_queue($1)", name)
		s.exec("select sb.create_service($1, $1, '{DEFAULT}')", name)
	}
	return s
}

// exec runs a statement as the owner.
func (s *stage) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// value returns the only value of a statement as the owner.
func value[T any](s *stage, sql string, args ...any) (v T) {
	s.t.Helper()
	if err := s.pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// superuser runs a statement as superuser.
func (s *stage) superuser(sql string, args ...any) {
	s.t.Helper()
	conn := s.db.Superuser(s.t)
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// executor makes a role that activation procedures run as, and that may receive from the queue.
func (s *stage) executor(queue string) string {
	s.t.Helper()
	role := s.db.CreateRole(s.t, "executor")
	s.superuser(fmt.Sprintf("grant %s to %s, %s", role, s.role, s.db.Owner))
	s.exec("select sb.grant_receive($1, $2)", queue, role)
	return role
}

// config is that of an activator with short times.
func (s *stage) config() activator.Config {
	return activator.Config{
		DatabaseURL: s.db.URLAs(s.role), StartupTimeout: -1,
		Logger: slog.New(slog.NewTextHandler(testLog{s.t}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// running is an activator under test.
type running struct {
	*activator.Activator
	stop func() error // ends it and returns the error of Run
}

// start runs an activator until the test ends. Only one of several in a test may have an empty name.
func (s *stage) start(cfg activator.Config, register ...func(a *activator.Activator)) *running {
	s.t.Helper()
	a, err := activator.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range register {
		r(a)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(60 * time.Second):
			return fmt.Errorf("the activator does not end")
		}
	})
	s.t.Cleanup(func() {
		if err := stop(); err != nil {
			s.t.Errorf("run: %v", err)
		}
	})
	return &running{Activator: a, stop: stop}
}

// send begins a dialog from client to server and sends bodies on it.
func (s *stage) send(bodies ...string) sbroker.Handle {
	s.t.Helper()
	var h sbroker.Handle
	err := sbroker.RunTx(context.Background(), s.pool, func(ctx context.Context, b *sbroker.Broker) (err error) {
		if h, err = b.BeginDialog(ctx, sbroker.Dialog{From: "client", To: "server"}); err != nil {
			return err
		}
		for _, body := range bodies {
			if err := b.SendText(ctx, h, sbroker.DefaultMessageType, body); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// eventually waits for a condition.
func (s *stage) eventually(what string, cond func() bool) {
	s.t.Helper()
	s.within(20*time.Second, what, cond)
}

func (s *stage) within(limit time.Duration, what string, cond func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(limit)
	for !cond() {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(2 * time.Millisecond) // a pace, not a proof
	}
}

// idle waits until no message is left in the queue.
func (s *stage) idle(queue string) {
	s.t.Helper()
	s.within(30*time.Second, queue+" is empty", func() bool {
		return value[int](s, "select count(*) from sb.queue_messages where queue_name = $1", queue) == 0
	})
}

// testLog shows an activator's log when the test fails.
type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", bytes.TrimRight(p, "\n"))
	return len(p), nil
}

// captured is a log to look into.
type captured struct{ pgtest.Buffer }

func (c *captured) logger() *slog.Logger { return slog.New(slog.NewTextHandler(c, nil)) }
