// Package pgtest gives each test a database of its own, in which the broker is installed.
//
// A test binary calls [Main] from TestMain and [New] from its tests. The first New starts a private server (or takes
// the one SBROKER_TEST_URL names, a superuser's URL), creates an owner role without any special right, and installs
// the broker as that role into a template that every test's database is cloned from. So each test also proves that
// no superuser is needed to install.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/pgsbroker/sbroker/internal/privatepg"
	"github.com/pgsbroker/sbroker/migrations"
)

// timeout bounds what the harness itself does on the server.
const timeout = 60 * time.Second

// server is the one server of a test binary.
type server struct {
	private  *privatepg.Server // nil with SBROKER_TEST_URL
	admin    *pgxpool.Pool     // superuser, in the maintenance database
	prefix   string            // of all names on the server, so that concurrent binaries never meet
	owner    string
	password string // of every role made here
	next     atomic.Int64
}

// shared starts the server when it is first asked for.
var (
	shared  = sync.OnceValues(startServer)
	started atomic.Pointer[server]
)

// Main runs a package's tests, stops the server, and fails when goroutines are left over. It does not return.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if s := started.Load(); s != nil {
		if err := s.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := goleak.Find(options...); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest: left over:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func startServer() (_ *server, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*timeout) // an image may have to be pulled
	defer cancel()
	// Lower case, so that names need no quotes.
	run := strings.ToLower(rand.Text()[:10])
	s := &server{prefix: "sbtest_" + run, owner: "sb_owner", password: rand.Text()}
	adminURL := os.Getenv("SBROKER_TEST_URL")
	if adminURL != "" {
		s.owner += "_" + run
	} else {
		s.private, err = privatepg.Start(ctx, privatepg.Options{Settings: map[string]string{
			"max_connections":           "200",
			"max_prepared_transactions": "10",
			"autovacuum":                "on",
		}})
		if err != nil {
			return nil, err
		}
		adminURL = s.private.URL()
	}
	started.Store(s)
	defer func() {
		if err != nil {
			started.Store(nil)
			err = errors.Join(err, s.stop())
		}
	}()
	config, err := pgxpool.ParseConfig(adminURL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 8
	if s.admin, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	return s, s.makeTemplate(ctx)
}

// makeTemplate creates the owner and the database that tests clone.
func (s *server) makeTemplate(ctx context.Context) error {
	if err := s.createRole(ctx, s.owner); err != nil {
		return err
	}
	if err := s.createDatabase(ctx, s.prefix, "template0"); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.url(s.prefix, s.owner))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return install(ctx, conn)
}

// install does what `sbactivator migrate up` does on an empty database, one implicit transaction a file.
func install(ctx context.Context, conn *pgx.Conn) error {
	files, err := fs.Glob(migrations.FS, "*.up.sql") // sorted by name
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("no migrations are embedded")
	}
	if _, err := conn.Exec(ctx, "create schema if not exists sb_internal"); err != nil {
		return err
	}
	for _, file := range files {
		sql, err := fs.ReadFile(migrations.FS, file)
		if err != nil {
			return err
		}
		if err := conn.PgConn().Exec(ctx, string(sql)).Close(); err != nil {
			return describe(file, string(sql), err)
		}
	}
	return nil
}

// stop removes what was made on the server, and the server itself when it is ours.
func (s *server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var err error
	if s.admin != nil {
		if s.private == nil {
			err = errors.Join(s.dropDatabase(ctx, s.prefix), s.exec(ctx, "drop role if exists "+ident(s.owner)))
		}
		s.admin.Close()
	}
	if s.private != nil {
		err = errors.Join(err, s.private.Stop(ctx))
	}
	return err
}

func (s *server) exec(ctx context.Context, sql string) error {
	if _, err := s.admin.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

func (s *server) createRole(ctx context.Context, name string) error {
	// Not by exec, which would show the password.
	_, err := s.admin.Exec(ctx, fmt.Sprintf("create role %s login password '%s'", ident(name), s.password))
	if err != nil {
		return fmt.Errorf("create role %s: %w", name, err)
	}
	return nil
}

func (s *server) createDatabase(ctx context.Context, name, template string) error {
	return s.exec(ctx, fmt.Sprintf("create database %s owner %s template %s", ident(name), ident(s.owner), ident(template)))
}

func (s *server) dropDatabase(ctx context.Context, name string) error {
	return s.exec(ctx, fmt.Sprintf("drop database if exists %s with (force)", ident(name)))
}

// url is the URL of a database for a role made here, or for the superuser when role is empty.
func (s *server) url(database, role string) string {
	config := s.admin.Config().ConnConfig
	u, err := url.Parse(config.ConnString())
	if err != nil || u.Scheme == "" { // a key=value string
		u = &url.URL{Scheme: "postgres", Host: fmt.Sprintf("%s:%d", config.Host, config.Port)}
		u.User = url.UserPassword(config.User, config.Password)
	}
	u.Path = "/" + database
	if role != "" {
		u.User = url.UserPassword(role, s.password)
	}
	return u.String()
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// DB is the database of one test. Its connections are closed, and itself is dropped, when the test ends.
type DB struct {
	// Name is the database's name, unique on the server.
	Name string
	// Owner is the role that owns the database and the broker in it: no superuser, no CREATEROLE.
	Owner string

	server *server
	mu     sync.Mutex
	roles  []string
}

// New returns a database in which the broker is installed. Without a server to run on, the test is skipped, and
// fails when the environment says CI=true.
func New(t testing.TB) *DB {
	t.Helper()
	return newDB(t, func(s *server) string { return s.prefix })
}

// Empty returns a database that holds nothing, for tests that install the broker themselves.
func Empty(t testing.TB) *DB {
	t.Helper()
	return newDB(t, func(*server) string { return "template0" })
}

func newDB(t testing.TB, template func(*server) string) *DB {
	t.Helper()
	s, err := shared()
	if err != nil {
		if errors.Is(err, privatepg.ErrNoServer) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	db := &DB{Name: fmt.Sprintf("%s_%d", s.prefix, s.next.Add(1)), Owner: s.owner, server: s}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := s.createDatabase(ctx, db.Name, template(s)); err != nil {
		t.Fatal(err)
	}
	cleanup(t, db.drop)
	return db
}

// cleanup runs fn when the test ends. The test's own context is over by then.
func cleanup(t testing.TB, fn func(ctx context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := fn(ctx); err != nil {
			t.Errorf("cleanup: %v", err)
		}
	})
}

// URL is the owner's connection URL.
func (db *DB) URL() string { return db.URLAs(db.Owner) }

// URLAs is the connection URL of a role made by [DB.CreateRole], or of the superuser when role is empty.
func (db *DB) URLAs(role string) string { return db.server.url(db.Name, role) }

// Pool returns a connection pool of the owner.
func (db *DB) Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 16 // the default of 4 would make workers wait for each other on a small machine
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Conn returns a new connection of the owner.
func (db *DB) Conn(t testing.TB) *pgx.Conn {
	t.Helper()
	return db.ConnAs(t, db.Owner)
}

// Superuser returns a new connection of a superuser.
func (db *DB) Superuser(t testing.TB) *pgx.Conn {
	t.Helper()
	return db.ConnAs(t, "")
}

// ConnAs returns a new connection of the role.
func (db *DB) ConnAs(t testing.TB, role string) *pgx.Conn {
	t.Helper()
	conn := db.connect(t, role, "")
	cleanup(t, conn.Close)
	return conn
}

func (db *DB) connect(t testing.TB, role, applicationName string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(db.URLAs(role))
	if err != nil {
		t.Fatal(err)
	}
	if applicationName != "" {
		config.RuntimeParams["application_name"] = applicationName
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// CreateRole makes a role that may log in and has no rights, and returns its name: roles belong to the whole
// server, so it is the database's name followed by the suffix. The role goes with the database.
func (db *DB) CreateRole(t testing.TB, suffix string) string {
	t.Helper()
	name := db.Name + "_" + suffix
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := db.server.createRole(ctx, name); err != nil {
		t.Fatal(err)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.roles = append(db.roles, name)
	return name
}

// drop drops the database and then its roles. In this order nothing in the database depends on a role any more; DROP
// OWNED would not do, since it leaves what another role has granted.
func (db *DB) drop(ctx context.Context) error {
	err := db.server.dropDatabase(ctx, db.Name)
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, role := range db.roles {
		err = errors.Join(err, db.server.exec(ctx, "drop role if exists "+ident(role)))
	}
	return err
}
