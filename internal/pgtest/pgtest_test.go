package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestInstalledByPlainOwner(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	got := pgtest.Strings(t, db.Conn(t), `
		select session_user, r.rolsuper, r.rolcreaterole, r.rolcreatedb, d.datdba = r.oid, s.nspowner = r.oid
		from pg_roles as r, pg_database as d, pg_namespace as s
		where r.rolname = session_user and d.datname = current_database() and s.nspname = 'sb_internal'`)
	if want := []string{db.Owner + "|f|f|f|t|t"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	objects := pgtest.Strings(t, db.Conn(t), `
		select count(*) > 0 from pg_class as c where c.relnamespace = 'sb_internal'::regnamespace`)
	if !slices.Equal(objects, []string{"t"}) {
		t.Error("the template holds no broker")
	}
	super := pgtest.Strings(t, db.Superuser(t), "select current_setting('is_superuser'), current_database()")
	if want := []string{"on|" + db.Name}; !slices.Equal(super, want) {
		t.Errorf("superuser: got %v, want %v", super, want)
	}
}

func TestDatabasesAreSeparateAndGo(t *testing.T) {
	t.Parallel()
	outer := pgtest.New(t)
	var inner string
	t.Run("inner", func(t *testing.T) {
		db := pgtest.New(t)
		inner = db.Name
		if _, err := db.Pool(t).Exec(t.Context(), "create table only_here ()"); err != nil {
			t.Fatal(err)
		}
		db.Superuser(t) // an open connection does not keep the database
	})
	got := pgtest.Strings(t, outer.Conn(t), `
		select to_regclass('public.only_here') is null,
		       (select count(*) from pg_database as d where d.datname = $1)`, inner)
	if want := []string{"t|0"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	got := pgtest.Strings(t, pgtest.Empty(t).Conn(t), `
		select count(*) from pg_namespace as n where n.nspname ~ '^sb'`)
	if !slices.Equal(got, []string{"0"}) {
		t.Errorf("got %v", got)
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	outer := pgtest.Empty(t)
	var role string
	t.Run("inner", func(t *testing.T) {
		db := pgtest.Empty(t)
		role = db.CreateRole(t, "alice")
		other := db.CreateRole(t, "bob")
		db.Session(t, "owner").Exec(fmt.Sprintf("grant create on schema public to %s with grant option", role))
		alice := db.SessionAs(t, "alice", role)
		if got := alice.Value("select session_user"); got != role {
			t.Errorf("session_user = %s", got)
		}
		alice.Exec("create table mine ()")
		alice.Exec("grant create on schema public to " + other)
		alice.ExecError("42501", "create schema nowhere")
	})
	if got := pgtest.Strings(t, outer.Conn(t), "select from pg_roles as r where r.rolname = $1", role); len(got) != 0 {
		t.Errorf("%s is still there", role)
	}
}

func TestTwoSessions(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	one, two := db.Session(t, "one"), db.Session(t, "two")
	one.Exec("create table account (id integer, amount integer)")
	one.Exec("insert into account values (1, 10)")

	one.Begin()
	one.Exec("update account set amount = amount + $1", 1)
	two.Begin()
	updated := two.GoExec("update account set amount = amount * 2")
	pgtest.WaitBlocked(t, two, one)
	select {
	case err := <-updated:
		t.Fatalf("the update did not wait: %v", err)
	default:
	}
	one.Commit()
	if err := pgtest.Wait(t, updated); err != nil {
		t.Fatal(err)
	}
	two.Rollback()
	if got := two.Value("select amount from account"); got != "11" {
		t.Errorf("amount = %s", got)
	}
	if got := one.Query("select application_name, null::text from pg_stat_activity where pid = $1", two.PID()); !slices.Equal(got, []string{"two|NULL"}) {
		t.Errorf("got %v", got)
	}
}

// A test that ends while its session still runs must not leave the session behind.
func TestEndWhileRunning(t *testing.T) {
	t.Parallel()
	var result <-chan error
	t.Run("inner", func(t *testing.T) {
		s := pgtest.Empty(t).Session(t, "sleeper")
		result = s.Go(func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "select pg_sleep(60)")
			return err
		})
	})
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCollectRows(t *testing.T) {
	t.Parallel()
	conn := pgtest.Empty(t).Conn(t)
	got := pgtest.CollectRows(t, conn, "select i, 'x' || i, null::text from generate_series(1, $1) as i", 2)
	want := [][]any{{int32(1), "x1", nil}, {int32(2), "x2", nil}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	lines := pgtest.Strings(t, conn, `select '00000000-0000-0000-0000-00000000000a'::uuid, '\x00ff'::bytea, interval '90 s', true`)
	if diff := cmp.Diff([]string{`00000000-0000-0000-0000-00000000000a|\x00ff|00:01:30|t`}, lines); diff != "" {
		t.Error(diff)
	}
	_, err := conn.Exec(t.Context(), "select 1 / 0")
	if got := pgtest.SQLState(fmt.Errorf("wrapped: %w", err)); got != "22012" {
		t.Errorf("SQLState = %q", got)
	}
	if got := pgtest.SQLState(errors.New("ours")); got != "" {
		t.Errorf("SQLState = %q", got)
	}
}

// failure records how a helper ends a test.
type failure struct {
	testing.TB
	text string
}

func (f *failure) Helper() {}

func (f *failure) Fatal(args ...any) { f.text = fmt.Sprint(args...); panic(f) }

func (f *failure) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

func mustFail(t *testing.T, want string, helper func(testing.TB)) {
	t.Helper()
	f := &failure{TB: t}
	defer func() {
		t.Helper()
		if recover() != f || !strings.Contains(f.text, want) {
			t.Errorf("failed with %q, want %q", f.text, want)
		}
	}()
	helper(f)
}

func TestFailuresAreClear(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	mustFail(t, "not within", func(t testing.TB) {
		pgtest.Eventually(t, 20*time.Millisecond, func() bool { return false })
	})
	mustFail(t, "no_such_column", func(t testing.TB) { db.Session(t, "s").Exec("select no_such_column") })
	mustFail(t, "s: got 22012, want 42501", func(t testing.TB) { db.Session(t, "s").ExecError("42501", "select 1 / 0") })
	mustFail(t, "s: got no SQLSTATE, want 42501", func(t testing.TB) { db.Session(t, "s").ExecError("42501", "select 1") })
	mustFail(t, "hint: think", func(t testing.TB) {
		pgtest.Strings(t, db.Conn(t), "do $$ begin raise exception 'no' using hint = 'think'; end $$")
	})
	mustFail(t, "commit ended in ROLLBACK", func(t testing.TB) {
		s := db.Session(t, "s")
		s.Begin()
		s.ExecError("22012", "select 1 / 0")
		s.Commit()
	})
}
