//go:build unix

// Package opstest tests that the broker lives with what happens to a PostgreSQL server: crashes, failover, dump and
// restore, poolers, replication, and the heavy tools of administrators.
package opstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgsbroker/sbroker/internal/migrate"
	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/internal/privatepg"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// owner is the role that owns the broker on the clusters of these tests: it may create schemas in its database, no more.
const owner = "sb_owner"

// cluster is a server of a test's own, which may be crashed, copied and promoted.
type cluster struct {
	t        *testing.T
	dir      string
	settings map[string]string
	server   *privatepg.Server
}

// newCluster starts a server that keeps what it has acknowledged, whatever happens to its processes.
func newCluster(t *testing.T, settings map[string]string) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: reachableDir(t), settings: map[string]string{
		"synchronous_commit": "on", "full_page_writes": "on", "max_connections": "60", "autovacuum_naptime": "1s",
	}}
	maps.Copy(c.settings, settings)
	c.start()
	t.Cleanup(c.stop)
	return c
}

// withBroker is newCluster with the broker installed by a plain role in a database of its own.
func withBroker(t *testing.T, settings map[string]string) *cluster {
	t.Helper()
	c := newCluster(t, settings)
	c.createDatabase("app")
	if err := migrate.Up(t.Context(), c.url("app", owner)); err != nil {
		t.Fatal(err)
	}
	return c
}

// createDatabase makes a database and, when it is missing, its owner.
func (c *cluster) createDatabase(name string) {
	c.t.Helper()
	super := c.connect("postgres", "")
	if len(pgtest.Strings(c.t, super, "select 1 from pg_roles where rolname = '"+owner+"'")) == 0 {
		exec(c.t, super, "create role "+owner+" login password 'secret'")
	}
	exec(c.t, super, "create database "+name+" owner "+owner)
}

// reachableDir is a temporary directory that the server reaches when it runs as somebody else.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (c *cluster) start() {
	c.t.Helper()
	server, err := privatepg.Start(c.t.Context(), privatepg.Options{DataDir: c.dir, Settings: c.settings})
	if errors.Is(err, privatepg.ErrNoServer) && os.Getenv("CI") != "true" {
		c.t.Skip(err)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if server.BinDir() == "" {
		_ = server.Stop(c.t.Context())
		c.t.Skip("a server in a container cannot be crashed or copied")
	}
	c.server = server
}

// stop is orderly.
func (c *cluster) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.server.Stop(ctx); err != nil {
		c.t.Error(err)
	}
}

// crash does what pg_ctl stop -m immediate does: every process ends where it is.
func (c *cluster) crash() {
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
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		c.t.Fatal(err)
	}
	c.stop()
}

// url is the URL of a database for a role with password secret, or for the superuser.
func (c *cluster) url(database, role string) string {
	u, err := url.Parse(c.server.DSN(database))
	if err != nil {
		c.t.Fatal(err)
	}
	if role != "" {
		u.User = url.UserPassword(role, "secret")
	}
	return u.String()
}

// connect opens a connection of a role, or of the superuser.
func (c *cluster) connect(database, role string) *pgx.Conn {
	c.t.Helper()
	return connect(c.t, c.url(database, role))
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(conn) })
	return conn
}

// closeConn does not mind a server that is gone.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

func exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) pgconn.CommandTag {
	t.Helper()
	tag, err := conn.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return tag
}

// want compares the rows of a query, columns separated by bars.
func want(t *testing.T, conn *pgx.Conn, what, query string, rows ...string) {
	t.Helper()
	if got := pgtest.Strings(t, conn, query); fmt.Sprint(got) != fmt.Sprint(rows) {
		t.Errorf("%s: got %q, want %q", what, got, rows)
	}
}

func major(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	n, err := strconv.Atoi(pgtest.Strings(t, conn, "select current_setting('server_version_num')::integer / 10000")[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
