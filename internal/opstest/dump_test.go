//go:build unix

package opstest

import (
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgsbroker/sbroker/internal/migrate"
	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// The data of an old version do as well for this one; what becomes of them is written down there.
func fixture(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../testdata/upgrade/v0.1.0", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// client returns how to run pg_dump, pg_restore or psql: that of the server, or else a newer one on PATH.
func (c *cluster) client(name string) func(url string, args ...string) string {
	c.t.Helper()
	program := filepath.Join(c.server.BinDir(), name)
	if _, err := os.Stat(program); err != nil {
		program = name
		version, err := osexec.CommandContext(c.t.Context(), name, "--version").Output()
		found, _ := strconv.Atoi(string(regexp.MustCompile(`\d+`).Find(version)))
		if needed := major(c.t, c.connect("postgres", "")); err != nil || found < needed {
			c.t.Skipf("%s has no %s, and there is none for PostgreSQL %d on PATH", c.server.BinDir(), name, needed)
		}
	}
	return func(address string, args ...string) string {
		c.t.Helper()
		u, err := url.Parse(address)
		if err != nil {
			c.t.Fatal(err)
		}
		password, _ := u.User.Password()
		u.User = url.User(u.User.Username())
		cmd := osexec.CommandContext(c.t.Context(), program, append(slices.Clone(args), "--dbname="+u.String())...)
		cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
		out, err := cmd.CombinedOutput()
		if err != nil {
			c.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
}

// A dump has everything that is under way. Restored into another cluster, all of it goes on, and what was counted against
// a queue in the old one is not held against it.
func TestDumpAndRestore(t *testing.T) {
	t.Parallel()
	source := withBroker(t, nil)
	exec(t, source.connect("app", ""), "alter schema public owner to "+owner) // before PostgreSQL 15 it is a stranger's
	app := source.connect("app", owner)
	pgtest.RunScript(t, app, fixture(t, "data.sql"))
	want(t, app, "on the brink", "select consecutive_rollbacks from sb.queue_statistics where queue_name = 'RightQueue'", "4")
	dump := source.client("pg_dump")
	psql, restore := source.client("psql"), source.client("pg_restore")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	from := source.url("app", owner)
	dump(from, "--file="+file("plain"))
	dump(from, "--format=custom", "--file="+file("custom"))
	dump(from, "--format=directory", "--jobs=2", "--file="+file("directory"))
	dump(from, "--format=custom", "--schema=sb", "--schema=sb_internal", "--file="+file("schemas"))
	dump(from, "--format=custom", "--schema=public", "--file="+file("public"))
	dump(from, "--format=custom", "--data-only", "--exclude-table=sb_internal.queue_[0-9]*", "--file="+file("data"))

	// What happens next in the old database must not concern the copies.
	target := newCluster(t, nil)
	for name, how := range map[string]struct {
		restore func(database, superuser string)
		role    string // who goes on
	}{
		"plain": {func(to, _ string) {
			psql(to, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file="+file("plain"))
		}, owner},
		"custom, parallel": {func(to, _ string) {
			restore(to, "--exit-on-error", "--jobs=2", file("custom"))
		}, owner},
		"directory, parallel": {func(to, _ string) {
			restore(to, "--exit-on-error", "--jobs=2", file("directory"))
		}, owner},
		"by a superuser": {func(_, super string) {
			restore(super, "--exit-on-error", file("custom"))
		}, owner},
		"schema by schema": {func(to, _ string) {
			restore(to, "--exit-on-error", file("schemas"))
			restore(to, "--exit-on-error", "--schema=public", file("public"))
		}, owner},
		"another owner": {func(to, _ string) {
			restore(to, "--exit-on-error", "--no-owner", "--no-privileges", file("custom"))
		}, "heir"},
		"data only": {func(to, super string) {
			if err := migrate.Up(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			psql(to, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command="+truncateAll)
			restore(to, "--exit-on-error", "--schema-only", "--schema=public", file("public"))
			restore(super, "--exit-on-error", "--data-only", "--disable-triggers", file("data"))
			psql(to, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command=select sb.after_restore()")
		}, owner},
	} {
		t.Run(name, func(t *testing.T) {
			database := regexp.MustCompile(`\W+`).ReplaceAllString(name, "_")
			super := target.connect("postgres", "")
			if how.role != owner && !slices.Contains(pgtest.Strings(t, super, "select rolname from pg_roles"), how.role) {
				exec(t, super, "create role "+how.role+" login password 'secret'")
			}
			target.createDatabase(database)
			exec(t, super, "alter database "+database+" owner to "+how.role)
			exec(t, target.connect(database, ""), "alter schema public owner to "+how.role)
			how.restore(target.url(database, how.role), target.url(database, ""))
			conn := target.connect(database, how.role)
			if how.role != owner {
				exec(t, conn, "select sb.after_restore()")
				exec(t, conn, strings.NewReplacer("old_owner", owner, "new_owner", how.role).Replace(adopt))
			}
			// Wherever the ids of transactions stand here.
			want(t, conn, "nothing is held against the queue", "select is_receive_enabled from sb.service_queues where name = 'RightQueue'", "t")
			for range 3 {
				exec(t, conn, "begin; select * from sb.receive('RightQueue', 1); rollback")
			}
			got := pgtest.RunScript(t, conn, fixture(t, "after.sql"))
			if diff := cmp.Diff(strings.Split(fixture(t, "expected.txt"), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("what became of the data (-want +got):\n%s", diff)
			}
			// Poison handling is alive, and its events come.
			exec(t, conn, "select public.begin_talk('poison'), public.say('poison', 'poison 1')")
			for range 5 {
				exec(t, conn, "begin; select * from sb.receive('RightQueue'); rollback")
			}
			want(t, conn, "stopped", "select count(*) from sb.receive('RightQueue')", "0")
			want(t, conn, "event", "select message_type_name from sb.receive('EventQueue')",
				"https://schemas.microsoft.com/SQL/Notifications/EventNotification")
		})
	}
}

// adopt and truncateAll are what docs/operations.md says for handing over objects and for emptying an installation.
const (
	adopt = `select sb.alter_authorization(o.kind, o.name, 'new_owner')
  from (select 'message_type' as kind, name, message_type_id as id, owner from sb.service_message_types
        union all select 'contract', name, service_contract_id, owner from sb.service_contracts
        union all select 'queue', name, queue_id, owner from sb.service_queues
        union all select 'service', name, service_id, owner from sb.services
        union all select 'route', name, route_id, owner from sb.routes) as o
 where o.owner = 'old_owner'
   and o.id >= 65536;`
	truncateAll = `do $$
begin
  execute (
    select 'truncate ' || string_agg(c.oid::regclass::text, ', ')
      from pg_class as c
     where c.relkind = 'r'
       and c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace));
end $$;`
)

func TestDocumentedStatements(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{adopt, truncateAll} {
		if !strings.Contains(string(text), strings.ReplaceAll(statement, "\n", "\n  ")) {
			t.Errorf("docs/operations.md says something else than\n%s", statement)
		}
	}
}
