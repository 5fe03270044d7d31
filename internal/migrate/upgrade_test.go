package migrate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/migrations"
)

var update = flag.Bool("update", false, "write testdata/upgrade/*/expected.txt instead of comparing with it")

// releases are the versions that may be found in the world, and the last migration of each.
var releases = map[string]uint{"v0.1.0": 2}

// upTo is what a program of that version brings.
func upTo(t *testing.T, version uint) fstest.MapFS {
	t.Helper()
	m, err := newMigrator("postgres://", migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, known := range m.known {
		for _, direction := range []string{"up", "down"} {
			name := fileName(known, direction)
			text, err := migrations.FS.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if known.Version <= version {
				files[name] = &fstest.MapFile{Data: text}
			}
		}
	}
	return files
}

func script(t *testing.T, release, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../testdata/upgrade", release, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every release that was, with data on their way, can be brought to this one, and back: everything is received, once and
// in order, and the schema is that of a new installation.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for release, version := range releases {
		older := upTo(t, version)
		for name, way := range map[string]func(t *testing.T, db *testDB){
			"not at all": func(*testing.T, *testDB) {},
			"up": func(t *testing.T, db *testDB) {
				if err := db.migrator(t, migrations.FS).up(t.Context()); err != nil {
					t.Fatal(err)
				}
				fresh := newDatabase(t)
				if err := fresh.migrator(t, migrations.FS).up(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(schemaOf(t, fresh), schemaOf(t, db)); diff != "" {
					t.Errorf("schema (-new +upgraded):\n%s", diff)
				}
			},
			"up and down": func(t *testing.T, db *testDB) {
				before := schemaOf(t, db)
				m := db.migrator(t, migrations.FS)
				if err := m.up(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range migrations.Latest() - version {
					if err := m.down(t.Context(), false); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(before, schemaOf(t, db)); diff != "" {
					t.Errorf("schema (-before +after):\n%s", diff)
				}
			},
			"up, down and up": func(t *testing.T, db *testDB) {
				m := db.migrator(t, migrations.FS)
				if err := m.up(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := m.down(t.Context(), false); err != nil {
					t.Fatal(err)
				}
				if err := m.up(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
		} {
			t.Run(release+"/"+name, func(t *testing.T) {
				t.Parallel()
				db := newDatabase(t)
				do(t, db.super, "grant create on schema public to "+quote(db.role)) // for the application's tables
				if err := db.migrator(t, older).up(t.Context()); err != nil {
					t.Fatal(err)
				}
				conn := db.ConnAs(t, db.role)
				pgtest.RunScript(t, conn, script(t, release, "data.sql"))
				way(t, db)
				got := pgtest.RunScript(t, conn, script(t, release, "after.sql"))
				if *update && name == "not at all" {
					if err := os.WriteFile(filepath.Join("../../testdata/upgrade", release, "expected.txt"), []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(strings.Split(script(t, release, "expected.txt"), "\n"), strings.Split(got, "\n")); diff != "" {
					t.Errorf("what became of the data (-want +got):\n%s", diff)
				}
				conn.Close(t.Context())
				// Nothing of it stands in the way of the way back.
				if m := db.migrator(t, migrations.FS); m.mustStatus(t).Version == migrations.Latest() {
					do(t, db.super, "drop table public.order_state")
					if err := m.down(t.Context(), true); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// ofQueue are the sequences that come with queues and priorities.
var ofQueue = regexp.MustCompile(`sb_internal\.queue_\d`)

// schemaOf is the fingerprint less what the data add, with the role's name masked.
func schemaOf(t *testing.T, db *testDB) []string {
	t.Helper()
	var list []string
	for _, line := range db.fingerprint(t) {
		if strings.Contains(line, " sb") && !ofQueue.MatchString(line) && !strings.Contains(line, "order_state") {
			list = append(list, strings.ReplaceAll(line, db.Name, "…"))
		}
	}
	return list
}

// Senders and readers go on while the schema is brought up and down beneath them: a transaction may have to be done again,
// but nothing deadlocks, and nothing is lost, doubled or overtaken.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	for release, version := range releases {
		db := newDatabase(t)
		do(t, db.super, "grant create on schema public to "+quote(db.role))
		m := db.migrator(t, migrations.FS)
		if err := db.migrator(t, upTo(t, version)).up(t.Context()); err != nil {
			t.Fatal(err)
		}
		setUp := db.ConnAs(t, db.role)
		do(t, setUp, `
			select sb.create_queue('Outbox'), sb.create_queue('Inbox', poison_message_handling => false);
			select sb.create_service('Source', 'Outbox', '{DEFAULT}'), sb.create_service('Sink', 'Inbox', '{DEFAULT}');
			create table public.sent (handle uuid, n bigint);
			create table public.taken (id bigint generated always as identity, handle uuid, n bigint)`)

		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var taken atomic.Int64
		work := func(prepare, statement string) {
			conn := db.ConnAs(t, db.role)
			handle := ask[string](t, conn, prepare)[0]
			wg.Go(func() {
				for ctx.Err() == nil {
					tag, err := conn.Exec(context.WithoutCancel(ctx), statement, pgx.QueryExecModeExec, handle)
					// Functions of the old version that were at work look for what is gone; the next call finds the new ones.
					if code := pgtest.SQLState(err); err != nil && code != "42883" && code != "40001" && code != "XX000" {
						t.Errorf("%s: %v", release, err)
						return
					}
					if err != nil {
						t.Logf("%s: %v", release, err)
					}
					taken.Add(tag.RowsAffected())
				}
			})
		}
		for range 3 {
			work("select sb.begin_dialog('Source', 'Sink')::text", `
				with s as (insert into public.sent select $1::text::uuid, count(*) + 1 from public.sent where handle = $1::text::uuid returning n)
				select sb.send($1::text::uuid, 'DEFAULT', $1::text || ' ' || s.n) from s`)
			work("select ''", `
				insert into public.taken (handle, n)
				select split_part(sb.body_text(r.message_body), ' ', 1)::uuid, split_part(sb.body_text(r.message_body), ' ', 2)::bigint
				  from sb.receive('Inbox', 2) as r where $1::text = ''`)
		}
		progress := func() {
			target := taken.Load() + 30
			pgtest.Eventually(t, time.Minute, func() bool { return taken.Load() > target })
		}
		progress()
		for range 2 {
			if err := m.up(t.Context()); err != nil {
				t.Fatal(err)
			}
			progress()
			for range migrations.Latest() - version {
				if err := m.down(t.Context(), false); err != nil {
					t.Fatal(err)
				}
			}
			progress()
		}
		if err := m.up(t.Context()); err != nil {
			t.Fatal(err)
		}
		progress()
		cancel()
		wg.Wait()
		do(t, setUp, `
			insert into public.taken (handle, n)
			select split_part(sb.body_text(r.message_body), ' ', 1)::uuid, split_part(sb.body_text(r.message_body), ' ', 2)::bigint
			  from generate_series(1, 10000) as i cross join lateral (select * from sb.receive('Inbox', 100 + 0 * i)) as r`)
		for what, query := range map[string]string{
			"lost":         "select format('%s %s', handle, n) from (select handle, n from public.sent except select handle, n from public.taken) as t",
			"twice":        "select format('%s %s', handle, n) from public.taken group by handle, n having count(*) > 1",
			"out of order": "select format('%s %s', handle, n) from (select handle, n, lag(n, 1, 0::bigint) over (partition by handle order by id) as before from public.taken) as t where n <> before + 1",
		} {
			if rows := ask[string](t, setUp, query); len(rows) > 0 {
				t.Errorf("%s: %s: %q", release, what, rows)
			}
		}
	}
}

// A transaction that stays open makes up give up, instead of making everybody wait; meanwhile others get on with their work,
// and after repair up works.
func TestUpgradeBehindLongTransaction(t *testing.T) {
	t.Parallel()
	for _, version := range releases {
		db := newDatabase(t)
		if err := db.migrator(t, upTo(t, version)).up(t.Context()); err != nil {
			t.Fatal(err)
		}
		long, other := db.ConnAs(t, db.role), db.ConnAs(t, db.role)
		do(t, long, `
			select sb.create_queue('Box');
			select sb.create_service('One', 'Box', '{DEFAULT}')`)
		do(t, long, "select sb.send(sb.begin_dialog('One', 'One'), 'DEFAULT', i::text) from generate_series(1, 3) as i")
		do(t, long, "begin")
		do(t, long, "select * from sb.receive('Box')")

		m := db.migrator(t, migrations.FS)
		result := make(chan error, 1)
		go func() { result <- m.up(t.Context()) }()
		worked := 0
		var err error
		for done := false; !done; {
			select {
			case err = <-result:
				done = true
			default:
				do(t, other, "begin; select * from sb.receive('Box'); select sb.send(sb.begin_dialog('One', 'One'), 'DEFAULT', 'more'); rollback")
				worked++
			}
		}
		if pgtest.SQLState(err) != "55P03" || !strings.Contains(err.Error(), "pg_stat_activity") {
			t.Errorf("up: %v, want lock_not_available and what to do", err)
		}
		if worked < 5 {
			t.Errorf("others got %d transactions done meanwhile", worked)
		}
		do(t, long, "commit")
		if changed, err := m.repair(t.Context()); err != nil || !changed {
			t.Fatalf("repair: %v, %v", changed, err)
		}
		if got := m.mustStatus(t); got.Version != version || got.Dirty {
			t.Errorf("after repair: %+v", got)
		}
		if err := m.up(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Each file of each real migration, up and down, fails at its end or is killed there; repair finds out what holds, and
// from there both ways are open and lead where they always do.
func TestRepairRealMigrations(t *testing.T) {
	t.Parallel()
	latest := migrations.Latest()
	for version := uint(1); version <= latest; version++ {
		for _, direction := range []string{"up", "down"} {
			for _, end := range []string{"fails", "killed"} {
				if version == latest && end == "killed" || end == "fails" { // killing is no different from version to version
					t.Run(fmt.Sprintf("%d %s %s", version, direction, end), func(t *testing.T) {
						t.Parallel()
						repairRealMigration(t, version, direction, end)
					})
				}
			}
		}
	}
}

func repairRealMigration(t *testing.T, version uint, direction, end string) {
	ctx := t.Context()
	db := newDatabase(t)
	empty := db.fingerprint(t)
	files := upTo(t, migrations.Latest())
	real := db.migrator(t, files)
	if err := real.up(ctx); err != nil {
		t.Fatal(err)
	}
	full := db.fingerprint(t)
	for range migrations.Latest() - version { // down to the version, and for up below it
		if err := real.down(ctx, false); err != nil {
			t.Fatal(err)
		}
	}
	want := version
	if direction == "up" {
		if err := real.down(ctx, false); err != nil {
			t.Fatal(err)
		}
		want--
	}
	before := db.fingerprint(t)

	broken := upTo(t, migrations.Latest())
	for _, known := range real.known {
		if name := fileName(known, direction); known.Version == version {
			more := "\nselect nonsense;\n"
			if end == "killed" {
				more = "\nselect pg_catalog.pg_sleep(600);\n"
			}
			broken[name] = &fstest.MapFile{Data: append(slices.Clone(files[name].Data), more...)}
		}
	}
	m := db.migrator(t, broken)
	result := make(chan error, 1)
	go func() {
		if direction == "up" {
			result <- m.up(ctx)
		} else {
			result <- m.down(ctx, false)
		}
	}()
	if end == "killed" {
		pgtest.Eventually(t, time.Minute, func() bool {
			return len(ask[bool](t, db.super, `
				select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)) > 0
		})
	}
	if err := <-result; err == nil {
		t.Fatal("no error")
	}
	for name, err := range map[string]error{"up": real.up(ctx), "down": real.down(ctx, false)} {
		if !errors.Is(err, ErrDirty) {
			t.Errorf("%s on a dirty version: %v", name, err)
		}
	}
	if changed, err := real.repair(ctx); err != nil || !changed {
		t.Fatalf("repair: %v, %v", changed, err)
	}
	if got := real.mustStatus(t); got.Dirty || got.Version != want || got.Applied != want {
		t.Fatalf("after repair: %+v, want version %d", got, want)
	}
	if diff := cmp.Diff(before, db.fingerprint(t)); diff != "" && want > 0 { // the version table stays
		t.Errorf("something of the interrupted file was kept:\n%s", diff)
	}
	if err := real.up(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full, db.fingerprint(t)); diff != "" {
		t.Errorf("up after repair leads elsewhere:\n%s", diff)
	}
	if err := real.down(ctx, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(empty, db.fingerprint(t)); diff != "" {
		t.Errorf("down --all after repair left something:\n%s", diff)
	}
}
