package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	gomigrate "github.com/golang-migrate/migrate/v4"
	driver "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// testDB is an empty database, and a role that may create schemas in it and no more. Its name needs
// quoting and has capitals, to find whoever forgets it.
type testDB struct {
	*pgtest.DB
	super *pgx.Conn
	role  string
	owner string // URL of role
}

func newDatabase(t *testing.T) *testDB {
	t.Helper()
	db := pgtest.Empty(t)
	role := db.CreateRole(t, `Plain "Role"`)
	super := db.Superuser(t)
	do(t, super, "grant create on database "+quote(db.Name)+" to "+quote(role))
	return &testDB{DB: db, super: super, role: role, owner: db.URLAs(role)}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func do(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func ask[T any](t *testing.T, conn *pgx.Conn, query string) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// fingerprint lists everything in the database, with owners and rights but without oids.
func (db *testDB) fingerprint(t *testing.T) []string {
	t.Helper()
	return ask[string](t, db.super, `
		select format('schema %s %s %s', nspname, nspowner::regrole, nspacl) from pg_namespace
		 where nspname !~ '^pg_(toast_)?temp'
		union all
		select format('relation %s.%s %s %s %s', relnamespace::regnamespace, relname, relkind, relowner::regrole, relacl)
		  from pg_class where relnamespace <> 'pg_toast'::regnamespace
		union all
		select format('column %s.%s %s %s %s', relnamespace::regnamespace, relname, attname, atttypid::regtype, attacl)
		  from pg_attribute join pg_class on pg_class.oid = attrelid
		 where relnamespace <> 'pg_toast'::regnamespace and not attisdropped
		union all
		select format('routine %s %s %s %s', p.oid::regprocedure, md5(coalesce(pg_get_function_sqlbody(p.oid), prosrc)), proowner::regrole, proacl)
		  from pg_proc as p
		union all
		select format('type %s.%s %s', typnamespace::regnamespace, typname, typtype) from pg_type
		 where typnamespace <> 'pg_toast'::regnamespace
		union all
		select format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) from pg_constraint
		union all
		select format('trigger %s %s', tgrelid::regclass, tgname) from pg_trigger where not tgisinternal
		union all
		select format('default rights %s', defaclacl) from pg_default_acl
		union all
		select format('comments %s', count(*)) from pg_description
		union all
		select format('owned or granted %s', count(*)) from pg_shdepend as s
		  join pg_database as d on d.oid = s.dbid and d.datname = current_database()
		 order by 1`)
}

func (db *testDB) migrator(t *testing.T, files fs.FS) *migrator {
	t.Helper()
	m, err := newMigrator(db.owner, files)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *migrator) mustStatus(t *testing.T) State {
	t.Helper()
	state, err := m.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// fixture is a small schema in two versions.
func fixture() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"000001_one.up.sql": file(`
			create table sb_internal.meta (version bigint primary key, name text, applied_at timestamptz default now());
			create schema sb;
			insert into sb_internal.meta(version, name) values (1, 'one');`),
		"000001_one.down.sql": file(`
			drop schema sb;
			drop table sb_internal.meta;`),
		"000002_two.up.sql": file(`
			create table sb.t ();
			insert into sb_internal.meta(version, name) values (2, 'two');`),
		"000002_two.down.sql": file(`
			drop table sb.t;
			delete from sb_internal.meta where version = 2;`),
	}
}

// broken is the fixture with a statement that fails at the end of one file.
func broken(name string) fstest.MapFS {
	files := fixture()
	files[name] = &fstest.MapFile{Data: append(slices.Clone(files[name].Data), "\n"+
		"-- sqlgen:begin functions/f.sql sha256:00\nselect 1;\nselect nonsense;\n-- sqlgen:end functions/f.sql\n"...)}
	return files
}

// othersHistory makes what a database in use has: tables, code, and a golang-migrate history in public.
func othersHistory(t *testing.T, db *testDB) {
	t.Helper()
	do(t, db.super, `
		create schema app;
		create table app.customer (id integer primary key, name text default current_user);
		create function app.f() returns integer language sql as 'select 1';
		create view app.v as select app.f() from app.customer`)
	source, err := iofs.New(fstest.MapFS{
		"7_theirs.up.sql": {Data: []byte("create table public.theirs ()")},
	}, ".")
	if err != nil {
		t.Fatal(err)
	}
	target, err := driver.WithInstance(stdlib.OpenDB(*db.super.Config()), &driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gomigrate.NewWithInstance("iofs", source, "pgx5", target)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Up(); err != nil {
		t.Fatal(err)
	}
	if sourceErr, targetErr := g.Close(); sourceErr != nil || targetErr != nil {
		t.Fatal(sourceErr, targetErr)
	}
}

func TestUpDownUpLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := newDatabase(t)
	othersHistory(t, db)
	history := `select format('%s %s', version, dirty) from public.schema_migrations`
	before := db.fingerprint(t)

	if err := Up(ctx, db.owner); err != nil {
		t.Fatal(err)
	}
	installed := db.fingerprint(t)
	if state, err := Status(ctx, db.owner); err != nil || state.Version != migrations.Latest() || state.Applied != state.Version ||
		state.Dirty || state.Pending != nil {
		t.Errorf("after up: %+v, %v", state, err)
	}
	if diff := cmp.Diff([]string{"7 f"}, ask[string](t, db.super, history)); diff != "" {
		t.Errorf("the other application's history changed:\n%s", diff)
	}
	if missing := ask[string](t, db.super, `
		select nspname::text from pg_namespace
		 where nspname in ('sb', 'sb_internal') and pg_get_userbyid(nspowner) <> '`+db.role+`'`); len(missing) != 0 {
		t.Errorf("not owned by the plain role: %v", missing)
	}

	if err := Down(ctx, db.owner, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, db.fingerprint(t)); diff != "" {
		t.Errorf("up and down left something (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"7 f"}, ask[string](t, db.super, history)); diff != "" {
		t.Errorf("the other application's history changed:\n%s", diff)
	}

	if err := Up(ctx, db.owner); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(installed, db.fingerprint(t)); diff != "" {
		t.Errorf("the second up differs from the first:\n%s", diff)
	}
}

func TestStepByStep(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := newDatabase(t)
	before := db.fingerprint(t)
	m := db.migrator(t, migrations.FS)
	if err := m.up(ctx); err != nil {
		t.Fatal(err)
	}
	for version := migrations.Latest(); version > 0; version-- {
		if err := m.down(ctx, false); err != nil {
			t.Fatal(err)
		}
		if got := m.mustStatus(t); got.Version != version-1 || got.Applied != version-1 || got.Dirty {
			t.Fatalf("one down from %d: %+v", version, got)
		}
	}
	if diff := cmp.Diff(before, db.fingerprint(t)); diff != "" {
		t.Errorf("the last step left something:\n%s", diff)
	}
	if err := m.down(ctx, false); err != nil {
		t.Errorf("down of nothing: %v", err)
	}
}

func TestStatusTouchesNothing(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	before := db.fingerprint(t)
	got := db.migrator(t, fixture()).mustStatus(t)
	want := State{Latest: 2, Pending: []Migration{{1, "one"}, {2, "two"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, db.fingerprint(t)); diff != "" {
		t.Error(diff)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	var ready, done sync.WaitGroup
	for range 10 {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			ready.Wait()
			if err := Up(t.Context(), db.owner); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	versions := ask[int64](t, db.super, `select version from sb_internal.meta order by version`)
	if len(versions) != int(migrations.Latest()) {
		t.Errorf("versions stamped: %v", versions)
	}
}

func TestWaitingIsCancelled(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	do(t, db.super, fmt.Sprintf("select pg_advisory_lock(%d)", lockKey))
	ctx, cancel := context.WithCancel(t.Context())
	m := db.migrator(t, fixture())
	result := make(chan error)
	go func() { result <- m.up(ctx) }()
	// It is waiting as soon as it is connected: the lock is the first thing it asks for.
	for len(ask[int32](t, db.super, `
		select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
		   and query like '%pg_try_advisory_lock%' and state = 'idle'`)) == 0 {
		select {
		case err := <-result:
			t.Fatalf("did not wait: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		breakIt func(t *testing.T, db *testDB)
		dirty   int64 // version golang-migrate left
		want    uint
	}{
		"first up failed": {func(t *testing.T, db *testDB) {
			if err := db.migrator(t, broken("000001_one.up.sql")).up(t.Context()); err == nil {
				t.Fatal("no error")
			}
		}, 1, 0},
		"second up failed": {func(t *testing.T, db *testDB) {
			err := db.migrator(t, broken("000002_two.up.sql")).up(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range []string{"000002_two.up.sql line 6 (sql/functions/f.sql line 2)", `column "nonsense" does not exist`, "repair"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "create table") {
				t.Errorf("error quotes the file: %v", err)
			}
		}, 2, 1},
		"second down failed": {func(t *testing.T, db *testDB) {
			if err := db.migrator(t, fixture()).up(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := db.migrator(t, broken("000002_two.down.sql")).down(t.Context(), false); err == nil {
				t.Fatal("no error")
			}
		}, 1, 2},
		"first down failed": {func(t *testing.T, db *testDB) {
			if err := db.migrator(t, fixture()).up(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := db.migrator(t, broken("000001_one.down.sql")).down(t.Context(), true); err == nil {
				t.Fatal("no error")
			}
		}, -1, 1},
		"killed after commit": {func(t *testing.T, db *testDB) {
			if err := db.migrator(t, fixture()).up(t.Context()); err != nil {
				t.Fatal(err)
			}
			do(t, db.super, `update sb_internal.schema_migrations set dirty = true`)
		}, 2, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			db := newDatabase(t)
			before := db.fingerprint(t)
			test.breakIt(t, db)

			m := db.migrator(t, fixture())
			if got := ask[int64](t, db.super, `select version from sb_internal.schema_migrations where dirty`); !slices.Equal(got, []int64{test.dirty}) {
				t.Fatalf("dirty version: %v, want %d", got, test.dirty)
			}
			if err := m.up(ctx); !errors.Is(err, ErrDirty) {
				t.Errorf("up on a dirty version: %v", err)
			}
			if err := m.down(ctx, true); !errors.Is(err, ErrDirty) {
				t.Errorf("down on a dirty version: %v", err)
			}
			if changed, err := m.repair(ctx); err != nil || !changed {
				t.Fatalf("repair: %v, %v", changed, err)
			}
			if got := m.mustStatus(t); got.Dirty || got.Version != test.want || got.Applied != test.want {
				t.Errorf("after repair: %+v, want version %d", got, test.want)
			}
			if changed, err := m.repair(ctx); err != nil || changed {
				t.Errorf("repair again: %v, %v", changed, err)
			}
			if err := m.up(ctx); err != nil {
				t.Fatal(err)
			}
			if got := m.mustStatus(t); got.Version != 2 || got.Applied != 2 {
				t.Errorf("up after repair: %+v", got)
			}
			if err := m.down(ctx, true); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, db.fingerprint(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewerDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := newDatabase(t)
	if err := db.migrator(t, fixture()).up(ctx); err != nil {
		t.Fatal(err)
	}
	older := fixture()
	delete(older, "000002_two.up.sql")
	delete(older, "000002_two.down.sql")
	m := db.migrator(t, older)
	for name, err := range map[string]error{"up": m.up(ctx), "down": m.down(ctx, true)} {
		if !errors.Is(err, ErrNewer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A superuser who upgrades must not end up owning functions that run with their owner's rights.
func TestUpgradeKeepsTheOwner(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := newDatabase(t)
	older := fixture()
	delete(older, "000002_two.up.sql")
	if err := db.migrator(t, older).up(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := newMigrator(db.URLAs(""), fixture())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.up(ctx); err != nil {
		t.Fatal(err)
	}
	owner := ask[string](t, db.super, `select pg_get_userbyid(relowner)::text from pg_class where oid = 'sb.t'::regclass`)
	if !slices.Equal(owner, []string{db.role}) {
		t.Errorf("owner %v, want %s", owner, db.role)
	}
}

func TestRemovalStopsAtOthersObjects(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := newDatabase(t)
	m := db.migrator(t, fixture())
	if err := m.up(ctx); err != nil {
		t.Fatal(err)
	}
	do(t, db.super, `create table sb_internal.theirs ()`)
	if err := m.down(ctx, true); err == nil {
		t.Error("dropped a schema with somebody else's table")
	}
	do(t, db.super, `drop table sb_internal.theirs`)
	if err := m.down(ctx, true); err != nil {
		t.Error(err)
	}
}

// The plain file and the migrations are two ways to the same place.
func TestPlainFile(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const plain = "../../sql/sbroker.sql"
	text, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), fmt.Sprintf("pg_advisory_xact_lock(%d)", lockKey)) {
		t.Errorf("%s does not take the lock of this package", plain)
	}

	migrated, piped := newDatabase(t), newDatabase(t)
	if err := Up(ctx, migrated.owner); err != nil {
		t.Fatal(err)
	}
	if psql, err := exec.LookPath("psql"); err == nil {
		out, err := exec.CommandContext(ctx, psql, "-X", "-q", "-f", plain, piped.owner).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Fatalf("psql: %v\n%s", err, out)
		}
		db := pgtest.Empty(t)
		poor := db.CreateRole(t, "poor")
		out, err = exec.CommandContext(ctx, psql, "-X", "-q", "-f", plain, db.URLAs(poor)).CombinedOutput()
		if want := "HINT:  grant create on database " + db.Name + " to " + poor + ";"; err == nil || !strings.Contains(string(out), want) {
			t.Errorf("without CREATE: %v\n%s", err, out)
		}
		out, err = exec.CommandContext(ctx, psql, "-X", "-q", "-f", plain, piped.owner).CombinedOutput()
		if want := "sb is already installed, version "; err == nil || !strings.Contains(string(out), want) {
			t.Errorf("once more: %v\n%s", err, out)
		}
	} else {
		do(t, piped.ConnAs(t, piped.role), strings.Replace(string(text), `\set ON_ERROR_STOP on`, "", 1))
	}

	want, err := Status(ctx, migrated.owner)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Status(ctx, piped.owner)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-migrated +plain file):\n%s", diff)
	}
	// The roles differ in what their names begin with.
	mask := func(db *testDB) []string {
		list := db.fingerprint(t)
		for i, line := range list {
			list[i] = strings.ReplaceAll(line, db.Name, "…")
		}
		slices.Sort(list)
		return list
	}
	if diff := cmp.Diff(mask(migrated), mask(piped)); diff != "" {
		t.Errorf("schema (-migrated +plain file):\n%s", diff)
	}
	if err := Up(ctx, piped.owner); err != nil {
		t.Errorf("up after the plain file: %v", err)
	}
	if err := Down(ctx, piped.owner, true); err != nil {
		t.Errorf("down after the plain file: %v", err)
	}
}
