//go:build linux

package proof

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/migrate"
	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/internal/privatepg"
)

// cluster is a server of a test's own. It comes back at the same port.
type cluster struct {
	t      *testing.T
	dir    string
	port   int
	server *privatepg.Server
	super  string // the superuser's URL of the application's database, which outlives the server
}

// newCluster starts a server that keeps what it has acknowledged, whatever happens to its processes, with a stage on it.
func newCluster(t *testing.T) (*cluster, *stage) {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), port: pgtest.FreePort(t)}
	if err := os.Chmod(filepath.Dir(c.dir), 0o755); err != nil { // the server may run as somebody else
		t.Fatal(err)
	}
	c.start()
	c.super = c.server.DSN("app")
	t.Cleanup(func() { c.stop() })
	super := c.connect()
	s := &stage{T: t, owner: "sb_owner", login: "sb_activator", url: c.url}
	for _, sql := range []string{
		"create role sb_owner login password 'secret'; create role sb_activator login password 'secret'",
		"grant sb_owner to sb_activator; grant pg_signal_backend, pg_read_all_stats to sb_owner",
		"create database app owner sb_owner",
	} {
		if _, err := super.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrate.Up(t.Context(), c.url(s.owner)); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.pool, err = pgxpool.New(t.Context(), c.url(s.owner)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	s.exec("select sb.grant_admin($1)", s.login)
	return c, s
}

// start waits until processes of a server that was killed have ended, too.
func (c *cluster) start() {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var err error
		c.server, err = privatepg.Start(c.t.Context(), privatepg.Options{DataDir: c.dir, Port: c.port, Settings: map[string]string{
			"synchronous_commit": "on", "full_page_writes": "on", "max_connections": "100",
		}})
		if err == nil {
			break
		}
		if errors.Is(err, privatepg.ErrNoServer) && os.Getenv("CI") != "true" {
			c.t.Skip(err)
		}
		if time.Now().After(deadline) {
			c.t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if c.server.BinDir() == "" {
		c.stop()
		c.t.Skip("a server in a container cannot be killed")
	}
}

func (c *cluster) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.server.Stop(ctx); err != nil {
		c.t.Error(err)
	}
}

// signal sends the postmaster a signal that ends it: SIGQUIT is pg_ctl stop -m immediate.
func (c *cluster) signal(s syscall.Signal) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "data", "postmaster.pid"))
	if err != nil {
		c.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := syscall.Kill(pid, s); err != nil {
		c.t.Fatal(err)
	}
}

// url is that of the application's database, for the superuser when role is empty.
func (c *cluster) url(role string) string {
	u, err := url.Parse(c.super)
	if err != nil {
		c.t.Fatal(err)
	}
	if role != "" {
		u.User = url.UserPassword(role, "secret")
	}
	return u.String()
}

// connect opens a connection of the superuser to the database postgres.
func (c *cluster) connect() *pgx.Conn {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.server.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { closeConn(conn) })
	return conn
}

// closeConn does not mind a server that is gone.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
