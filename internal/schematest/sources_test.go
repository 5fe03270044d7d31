package schematest

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/migrations"
)

// sources returns the paths that sql/order.txt names, in its order. It is read here once more, without the generator,
// because the tests below are about what the generator made of it.
func sources(t *testing.T) []string {
	t.Helper()
	var entries, paths []string
	for line := range strings.Lines(read(t, "sql/order.txt")) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			entries = append(entries, line)
		}
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry, "/") {
			paths = append(paths, entry)
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, "sql", filepath.FromSlash(entry), "*.sql"))
		if err != nil || len(files) == 0 {
			t.Fatalf("sql/order.txt: nothing in %s: %v", entry, err)
		}
		for _, file := range files {
			if file := entry + filepath.Base(file); !slices.Contains(entries, file) {
				paths = append(paths, file)
			}
		}
	}
	return paths
}

var block = regexp.MustCompile(`(?ms)^-- sqlgen:begin (\S+) sha256:\S+\n(.*?)^-- sqlgen:end |^-- sqlgen:drop (\S+)$`)

// What the migrations leave of each source is the file itself.
func TestLastBlockIsTheSource(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations.FS, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{}
	for _, file := range files {
		text, err := fs.ReadFile(migrations.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			if dropped := m[3]; dropped != "" {
				delete(last, dropped)
			} else {
				last[m[1]] = m[2]
			}
		}
	}
	want := map[string]string{}
	for _, p := range sources(t) {
		want[p] = read(t, path.Join("sql", p))
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("go run ./sql/sqlgen snapshot (-sql/ +migrations):\n%s", diff)
	}
}

// inUse returns a database in which roles have rights, and whoever may has made what he may.
func inUse(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t)
	admin, user := db.CreateRole(t, `Ad "min"`), db.CreateRole(t, "user")
	exec(t, db.Superuser(t), "grant "+user+" to "+db.Owner) // who gives objects to a role has to be a member
	owner := db.Session(t, "owner")
	owner.Exec("select sb.grant_admin($1)", admin)
	db.SessionAs(t, "admin", admin).Exec(`
		select sb.create_message_type('Note', 'VALID_JSON', schema => '{"type": "object"}');
		select sb.create_contract('Talk', sent_by_any => '{Note}');
		select sb.create_queue('Queue', retention => true);
		select sb.create_queue('Events');
		select sb.create_service('Left', 'Queue', '{Talk}');
		select sb.create_service('Right', 'Queue', '{Talk}');
		select sb.create_service('Watch', 'Events', '{https://schemas.microsoft.com/SQL/Notifications/PostEventNotification}');
		select sb.create_event_notification('Off', 'Queue', 'BROKER_QUEUE_DISABLED', 'Watch');
		select sb.create_route('Far', 'remote://elsewhere', 'Elsewhere');
		select sb.create_broker_priority('High', priority_level => 9)`)
	owner.Exec(`
		select sb.create_state_table('public.states', 'total integer');
		select sb.set_option('poison_message_threshold', '3')`)
	owner.Exec("select sb.alter_authorization('queue', 'Events', $1)", user)
	owner.Exec("select sb.grant_receive('Queue', $1)", user)
	owner.Exec("select sb.grant_send('Right', 'public')")
	owner.Exec("select sb.grant_references('Talk', 'public')")
	handle := owner.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '2 hours')")
	owner.Exec("select sb.send($1::uuid, 'Note', '{}'::jsonb)", handle)
	owner.Exec("select sb.begin_conversation_timer($1::uuid, '1 hour')", handle)
	return db
}

// Every source may run again at any time, which is what a later migration does with it: nothing changes, neither the
// catalogs (rights included) nor what is stored.
func TestReplay(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) *pgtest.DB{
		"new":    func(t *testing.T) *pgtest.DB { return pgtest.New(t) },
		"in use": inUse,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := database(t)
			before := everything(t, db)
			owner := db.Conn(t)
			for _, p := range sources(t) {
				if err := owner.PgConn().Exec(t.Context(), read(t, path.Join("sql", p))).Close(); err != nil {
					t.Fatalf("sql/%s: %v", p, err)
				}
			}
			if diff := cmp.Diff(before, everything(t, db)); diff != "" {
				t.Errorf("replaying sql/ changed (-before +after):\n%s", diff)
			}
		})
	}
}

// everything lists all catalog entries of sb and sb_internal, and all their rows.
func everything(t *testing.T, db *pgtest.DB) []string {
	t.Helper()
	super := db.Superuser(t)
	list := pgtest.Strings(t, super, fingerprintQuery)
	tables := pgtest.Strings(t, super, `
		select c.oid::regclass::text from pg_class as c
		 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace) and c.relkind = 'r' order by 1`)
	for _, table := range tables {
		for _, row := range pgtest.Strings(t, super, "select to_jsonb(t) from "+table+" as t order by 1") {
			list = append(list, "row of "+table+" "+row)
		}
	}
	return list
}

// A query in sql/checks names what breaks a rule. Without rows all is well, and a check that finds nothing in a
// database made to break its rule checks nothing.
func TestChecks(t *testing.T) {
	t.Parallel()
	const function = `create function sb_internal._mutant() returns void language plpgsql `
	mutants := map[string][]string{
		"backslashes":  {function + `as $$ begin perform $re$\d$re$ ~ e'\\d' and 'x' ~ '\d'; end $$`},
		"coded_errors": {function + `as $$ begin raise exception 'no code'; end $$`},
		"comments": {
			function + `as 'begin end'`,
			`create table sb_internal.mutant ()`,
			`comment on view sb.services is null`,
			`comment on schema sb is null`,
		},
		"definer_search_path": {
			function + `security definer as 'begin end'`,
			function + `security definer set search_path = pg_temp, pg_catalog as 'begin end'`,
		},
		"dynamic_sql": {function + `as $$ begin execute 'drop table ' || current_user; end $$`},
		"execute_privileges": {
			`grant execute on function sb_internal._raise to pg_monitor`,
			`grant execute on function sb.body_text to pg_monitor`,
			`grant create on schema sb to pg_monitor`,
			`select sb.create_queue('Q'), sb.grant_receive('Q', 'pg_monitor'); grant select on sb.broker to pg_monitor with grant option`,
			`select sb.create_queue('Q'), sb.grant_receive('Q', 'pg_monitor'); grant insert on sb.broker to pg_monitor`,
			`alter default privileges in schema sb_internal grant select on tables to pg_monitor`,
		},
		"foreign_objects": {
			`create table public.mutant (x uuid references sb.conversation_group)`,
			`create table public.mutant (x integer references sb_internal.queue on delete cascade)`,
			`create table public.mutant () inherits (sb_internal.message)`,
			`create trigger mutant before insert on sb_internal.message for each row execute function suppress_redundant_updates_trigger()`,
			`create rule mutant as on delete to sb_internal.message do instead nothing`,
			`alter table sb_internal.message enable row level security`,
			`create policy mutant on sb_internal.message`,
		},
		"inner_callers": {
			`create function public.mutant() returns integer[] language sql begin atomic select sb_internal._visible(current_user, 'queue'); end`,
			`create function sb.mutant(who name) returns integer[] language sql begin atomic select sb_internal._visible(mutant.who, 'queue'); end`,
			`create view sb.mutant as select sb_internal._visible(current_user, 'queue'), sb_internal._visible(session_user, 'queue') as x`,
		},
		"internal_privileges": {
			`grant usage on schema sb_internal to public`,
			`grant select on sb_internal.message to pg_monitor`,
			`grant references (conversation_group_id) on sb.conversation_group to public`,
			`grant usage on sequence sb_internal.queuing_order to public`,
		},
		"names": {
			`alter table sb_internal.queue add constraint odd check (queue_id > 0)`,
			`create index odd on sb_internal.queue (owner)`,
			`alter table sb_internal.queue add at timestamp`,
			`alter table sb_internal.queue add other_name text`,
		},
		"overloads": {
			`create function sb.receive(text) returns void language sql as ''`,
		},
		"owners": {
			function + `as 'begin end'`,
			`alter table sb_internal.message owner to current_user`,
			`alter schema sb_internal owner to current_user`,
		},
		"public_privileges": {
			function + `as 'begin end'`,
			`grant execute on function sb.receive to public`,
			`grant select on sb.services to public`,
			`grant usage on schema sb to public`,
		},
		"replica_identity": {
			`create table sb_internal.mutant ()`,
			`alter table sb_internal.message replica identity default`,
			`alter table sb_internal.queue replica identity nothing`,
		},
		"search_paths": {
			function + `as 'begin end'`,
			`alter function sb_internal._run_validator security definer`,
		},
		"strict_functions":           {function + `volatile strict as 'begin end'`},
		"verbs_are_invoker":          {`alter function sb.receive security definer`, `create function sb.mutant() returns void language sql as 'select sb_internal._now()'`},
		"view_functions_are_definer": {`alter function sb_internal._queue_statistics security invoker`},
		"views_are_barriers":         {`alter view sb.services reset (security_barrier)`},
	}
	fresh, used := pgtest.New(t).Superuser(t), inUse(t).Superuser(t)
	files, err := os.ReadDir(filepath.Join(root, "sql", "checks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".sql")
		t.Run(name, func(t *testing.T) {
			check := read(t, "sql/checks/"+file.Name())
			for where, conn := range map[string]*pgx.Conn{"": fresh, " in a database in use": used} {
				for _, row := range findings(t, conn, check) {
					t.Errorf("%s%s", row, where)
				}
			}
			if len(mutants[name]) == 0 {
				t.Error("no mutant shows that the check finds anything")
			}
			for _, mutant := range mutants[name] {
				exec(t, fresh, "begin")
				exec(t, fresh, mutant)
				if len(findings(t, fresh, check)) == 0 {
					t.Errorf("does not find %s", mutant)
				}
				exec(t, fresh, "rollback")
			}
		})
		delete(mutants, name)
	}
	for name := range mutants {
		t.Errorf("sql/checks/%s.sql is gone", name)
	}
}

// findings returns what a check complains about, a line each.
func findings(t *testing.T, conn *pgx.Conn, check string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), check)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		found, err := pgx.RowToMap(row)
		if err != nil {
			return "", err
		}
		line, err := json.Marshal(found)
		return string(line), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func exec(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
