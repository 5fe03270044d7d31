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
