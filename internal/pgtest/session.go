package pgtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Session is one of several actors in a test: a connection with a name that shows in failures and in
// pg_stat_activity. Its methods end the test when the server reports an error that was not asked for. They belong
// to the test's goroutine; what is to run beside it goes through [Session.Go].
type Session struct {
	// Name is the actor's name.
	Name string
	// Conn is the connection, for what has no method here.
	Conn *pgx.Conn

	t   testing.TB
	db  *DB
	ctx context.Context //nolint:containedctx // one session, one test: it ends what still runs when the test does
	wg  sync.WaitGroup
}

// Session opens a session of the owner.
func (db *DB) Session(t testing.TB, name string) *Session {
	t.Helper()
	return db.SessionAs(t, name, db.Owner)
}

// SessionAs opens a session of the role.
func (db *DB) SessionAs(t testing.TB, name, role string) *Session {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{Name: name, Conn: db.connect(t, role, name), t: t, db: db, ctx: ctx}
	cleanup(t, func(ctx context.Context) error {
		cancel()
		s.wg.Wait() // a connection is not for two goroutines
		return s.Conn.Close(ctx)
	})
	return s
}

// PID is the process id of the session's backend.
func (s *Session) PID() uint32 { return s.Conn.PgConn().PID() }

// Exec runs a statement and returns its command tag.
func (s *Session) Exec(sql string, args ...any) pgconn.CommandTag {
	s.t.Helper()
	tag, err := s.Conn.Exec(s.ctx, sql, args...)
	s.check(sql, err)
	return tag
}

// ExecError runs a statement that must fail with the SQLSTATE, and returns the error.
func (s *Session) ExecError(code, sql string, args ...any) *pgconn.PgError {
	s.t.Helper()
	_, err := s.Conn.Exec(s.ctx, sql, args...)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != code {
		s.t.Fatalf("%s: got %s, want %s: %v", s.Name, orSuccess(SQLState(err)), code, describe("", sql, err))
	}
	return pgErr
}

// Query returns the rows of a statement as text, see [Strings].
func (s *Session) Query(sql string, args ...any) []string {
	s.t.Helper()
	rows, err := textRows(s.ctx, s.Conn, sql, args)
	s.check(sql, err)
	return rows
}

// Value returns the only column of the only row as text.
func (s *Session) Value(sql string, args ...any) string {
	s.t.Helper()
	rows := s.Query(sql, args...)
	if len(rows) != 1 {
		s.t.Fatalf("%s: %d rows, want one: %s", s.Name, len(rows), sql)
	}
	return rows[0]
}

// Begin starts a transaction.
func (s *Session) Begin() { s.t.Helper(); s.Exec("begin") }

// Commit commits it. A transaction that an earlier error has doomed, which COMMIT would quietly roll back, ends the
// test.
func (s *Session) Commit() {
	s.t.Helper()
	if tag := s.Exec("commit"); tag.String() != "COMMIT" {
		s.t.Fatalf("%s: commit ended in %s", s.Name, tag)
	}
}

// Rollback rolls it back.
func (s *Session) Rollback() { s.t.Helper(); s.Exec("rollback") }

// Go runs fn in its own goroutine and delivers its result. Until that has come, the session is fn's alone. When the
// test ends first, ctx is cancelled.
func (s *Session) Go(fn func(ctx context.Context, conn *pgx.Conn) error) <-chan error {
	result := make(chan error, 1)
	s.wg.Go(func() { result <- fn(s.ctx, s.Conn) })
	return result
}

// GoExec runs a statement in its own goroutine.
func (s *Session) GoExec(sql string, args ...any) <-chan error {
	return s.Go(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
}

func (s *Session) check(sql string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", s.Name, describe("", sql, err))
	}
}

// Wait returns what a [Session.Go] delivers, and ends the test when nothing has come within 10 seconds.
func Wait(t testing.TB, result <-chan error) error {
	t.Helper()
	return WaitWithin(t, 10*time.Second, result)
}

// WaitWithin is Wait for what may take so long.
func WaitWithin(t testing.TB, timeout time.Duration, result <-chan error) error {
	t.Helper()
	select {
	case err := <-result:
		return err
	case <-time.After(timeout):
		t.Fatalf("still running after %v", timeout)
		return nil
	}
}

// WaitBlocked returns as soon as the waiter waits for a lock that by holds, and ends the test when that has not
// come about within 10 seconds.
func WaitBlocked(t testing.TB, waiter, by *Session) {
	t.Helper()
	blocked := func() bool {
		var is bool
		err := waiter.db.server.admin.QueryRow(t.Context(),
			"select $1::integer = any (pg_catalog.pg_blocking_pids($2::integer))", by.PID(), waiter.PID()).Scan(&is)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if !within(10*time.Second, blocked) {
		t.Fatalf("%s does not wait for %s", waiter.Name, by.Name)
	}
}

// Eventually returns as soon as cond is true, and ends the test when it is not within the timeout.
func Eventually(t testing.TB, timeout time.Duration, cond func() bool) {
	t.Helper()
	if !within(timeout, cond) {
		t.Fatalf("not within %v", timeout)
	}
}

func within(timeout time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(timeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			return false
		}
		<-tick.C
	}
	return true
}

// SQLState is the error code that the server gave, empty when err is not the server's.
func SQLState(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// Querier is a connection, a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// CollectRows returns the rows of a statement, each as the values pgx makes of its columns.
func CollectRows(t testing.TB, q Querier, sql string, args ...any) [][]any {
	t.Helper()
	rows, err := q.Query(t.Context(), sql, args...)
	if err == nil {
		var all [][]any
		if all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() }); err == nil {
			return all
		}
	}
	t.Fatal(describe("", sql, err))
	return nil
}

// Strings returns the rows of a statement as psql -At shows them: the server's text of each column, joined by "|",
// with NULL for null.
func Strings(t testing.TB, q Querier, sql string, args ...any) []string {
	t.Helper()
	rows, err := textRows(t.Context(), q, sql, args)
	if err != nil {
		t.Fatal(describe("", sql, err))
	}
	return rows
}

func textRows(ctx context.Context, q Querier, sql string, args []any) ([]string, error) {
	args = append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, args...)
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var columns []string
		for _, raw := range row.RawValues() {
			if raw == nil {
				columns = append(columns, "NULL")
			} else {
				columns = append(columns, string(raw))
			}
		}
		return strings.Join(columns, "|"), nil
	})
}

// describe adds to a server's error what one looks for first: its code, detail, hint and context, and the line of
// the statement.
func describe(file, sql string, err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return fmt.Errorf("%s%s: %w", file, sql, err)
	}
	where := sql
	if file != "" {
		where = file
		if at := int(pgErr.Position); at > 0 {
			// The position counts characters, not bytes.
			runes := []rune(sql)
			where = fmt.Sprintf("%s:%d", file, 1+strings.Count(string(runes[:min(at, len(runes))]), "\n"))
		}
	}
	var more strings.Builder
	for _, part := range [][2]string{{"detail", pgErr.Detail}, {"hint", pgErr.Hint}, {"context", pgErr.Where}} {
		if part[1] != "" {
			fmt.Fprintf(&more, "\n  %s: %s", part[0], part[1])
		}
	}
	return fmt.Errorf("%s: %w%s", where, err, more.String())
}

func orSuccess(code string) string {
	if code == "" {
		return "no SQLSTATE"
	}
	return code
}

// Fingerprint sums up every row of every table of the broker, and how many advisory locks are held in the database.
func Fingerprint(s *Session) string {
	s.t.Helper()
	return s.Value(`
select md5(string_agg(c.oid::regclass || ':' ||
         query_to_xml(format('select x from %s as x order by x::text', c.oid::regclass), true, false, '')::text,
         e'\n' order by c.oid::regclass::text))
       || ':' || (select count(*) from pg_locks as l where l.locktype = 'advisory' and l.database = (
            select d.oid from pg_database as d where d.datname = current_database()))
  from pg_class as c
 where c.relkind = 'r'
   and c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)`)
}
