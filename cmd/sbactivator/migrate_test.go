package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestMigrate(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	latest := fmt.Sprint(migrations.Latest())
	for _, step := range []struct{ command, want string }{
		{"status", "version 0\ndirty   false\npending 1 schema, 2 functions"},
		{"up", "version " + latest + ", was 0\n"},
		{"up", "nothing to do, version " + latest + "\n"},
		{"status", "version " + latest + "\ndirty   false\npending none\n"},
		{"repair", "nothing to repair\nversion " + latest + "\n"},
		{"down", "version " + fmt.Sprint(migrations.Latest()-1) + ", was " + latest + "\n"},
		{"up", "version " + latest + ", was "},
		{"down --all", "version 0, was " + latest + "\n"},
		{"down --all", "nothing to do, version 0\n"},
	} {
		args := append([]string{"migrate", "--database-url", db.URL()}, strings.Fields(step.command)...)
		if code, stdout, stderr := execute(t, args...); code != exitDone || stderr != "" || !strings.HasPrefix(stdout, step.want) {
			t.Fatalf("%s: exit code %d, %s%s\nwant %s", step.command, code, stdout, stderr, step.want)
		}
	}
}

func TestMigrateRepair(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	migrate := func(command string) (int, string, string) {
		return execute(t, "migrate", command, "--database-url", db.URL())
	}
	if code, _, stderr := migrate("up"); code != exitDone {
		t.Fatal(stderr)
	}
	if _, err := db.Conn(t).Exec(t.Context(), "update sb_internal.schema_migrations set dirty = true"); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := migrate("up"); code != exitFailed || !strings.Contains(stderr, "run migrate repair") {
		t.Errorf("up on a dirty version: exit code %d, %s", code, stderr)
	}
	if code, stdout, stderr := migrate("repair"); code != exitDone || !strings.Contains(stdout, "dirty   false") {
		t.Errorf("repair: exit code %d, %s%s", code, stdout, stderr)
	}
}

// migratedDB is a database to which sb has come by migrate up.
func migratedDB(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.Empty(t)
	if code, _, stderr := execute(t, "migrate", "up", "--database-url", db.URL()); code != exitDone {
		t.Fatal(stderr)
	}
	return db
}

// What an interrupted step has left is not known before repair has looked.
func TestMigrateDirty(t *testing.T) {
	t.Parallel()
	db := migratedDB(t)
	execAll(t, db.Conn(t), "update sb_internal.schema_migrations set version = version - 1, dirty = true")
	code, stdout, stderr := execute(t, "migrate", "status", "--database-url", db.URL())
	want := "version not known: a migration was interrupted\ndirty   true\nnext    sbactivator migrate repair, which finds out\n"
	if code != exitDone || stdout != want || stderr != "" {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

// Who may not is told who may.
func TestMigrateRights(t *testing.T) {
	t.Parallel()
	db, empty := migratedDB(t), pgtest.Empty(t)
	stranger, poor := db.CreateRole(t, "stranger"), empty.CreateRole(t, "poor")
	for _, command := range []string{"up", "down", "repair", "status"} {
		code, stdout, stderr := execute(t, "migrate", command, "--database-url", db.URLAs(stranger))
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, "sb belongs to "+db.Owner+": run this as that role or a member of it") {
			t.Errorf("%s: exit code %d, %s%s", command, code, stdout, stderr)
		}
	}
	code, _, stderr := execute(t, "migrate", "up", "--database-url", empty.URLAs(poor))
	if want := "grant create on database " + empty.Name + " to " + poor + ";"; code != exitFailed || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	// A member does not inherit, so it has to become the owner to read.
	execAll(t, db.Superuser(t), "alter role "+stranger+" noinherit; grant "+db.Owner+" to "+stranger)
	if code, stdout, stderr := execute(t, "migrate", "status", "--database-url", db.URLAs(stranger)); code != exitDone || !strings.Contains(stdout, "pending none") {
		t.Errorf("as a member: exit code %d, %s%s", code, stdout, stderr)
	}
}

// With conversations, all of it goes only when that was meant.
func TestMigrateDownAll(t *testing.T) {
	t.Parallel()
	db := migratedDB(t)
	conn := db.Conn(t)
	execAll(t, conn, twoServices+dialog)
	for range 2 { // also with an older version
		if code, stdout, stderr := execute(t, "migrate", "down", "--all", "--database-url", db.URL()); code != exitFailed || stdout != "" || !strings.Contains(stderr, "pass --yes") {
			t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
		}
		if code, _, stderr := execute(t, "migrate", "down", "--database-url", db.URL()); code != exitDone {
			t.Fatal(stderr)
		}
		if code, _, stderr := execute(t, "migrate", "up", "--database-url", db.URL()); code != exitDone {
			t.Fatal(stderr)
		}
	}
	if code, stdout, stderr := execute(t, "migrate", "down", "--all", "--yes", "--database-url", db.URL()); code != exitDone || !strings.HasPrefix(stdout, "version 0") {
		t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
	}
}
