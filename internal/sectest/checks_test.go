package sectest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// offences are what each assertion of sql/checks is there to find. internal/sqltest proves that they find nothing where
// nothing is wrong.
var offences = []struct{ check, sql, object string }{
	{"backslashes", `create function sb_internal.f() returns boolean language plpgsql as $$ begin return $re$\d$re$ ~ e'\\d' and 'x' ~ '\d'; end $$`, "sb_internal.f()"},
	{"coded_errors", `create function sb.f() returns void language plpgsql as $$ begin raise exception 'x'; end $$`, "sb.f()"},
	{"comments", `create table sb_internal.t ()`, "sb_internal.t"},
	{"definer_search_path", `create function sb_internal.f() returns void language sql security definer set search_path = pg_temp, pg_catalog as ''`, "sb_internal.f()"},
	{"definer_search_path", `alter function sb_internal._now() security definer`, "sb_internal._now()"},
	{"dynamic_sql", `create function sb_internal.f(x text) returns void language plpgsql as $$ begin execute 'drop table ' || x; end $$`, "sb_internal.f(text)"},
	{"execute_privileges", `grant execute on function sb_internal._raise to {role}`, "sb_internal._raise(text,text[],text)"},
	{"execute_privileges", `grant execute on function sb.body_text to {role}`, "sb.body_text(bytea)"},
	{"execute_privileges", `select sb.grant_receive('Q', '{role}'); grant select on sb.broker to {role} with grant option`, "sb.broker"},
	{"execute_privileges", `select sb.grant_receive('Q', '{role}'); grant insert on sb.broker to {role}`, "sb.broker"},
	{"execute_privileges", `grant create on schema sb to {role}`, "sb"},
	{"execute_privileges", `alter default privileges in schema sb_internal grant select on tables to {role}`, "sb_internal.*"},
	{"foreign_objects", `create table public.t (x uuid references sb.conversation_group)`, "t"},
	{"foreign_objects", `create table public.t (x integer references sb_internal.queue on delete cascade)`, "t"},
	{"foreign_objects", `create table public.t () inherits (sb_internal.message)`, "t"},
	{"foreign_objects", `create trigger t before insert on sb_internal.message for each row execute function pg_catalog.suppress_redundant_updates_trigger()`, "sb_internal.message"},
	{"foreign_objects", `create rule r as on delete to sb_internal.message do instead nothing`, "sb_internal.message"},
	{"foreign_objects", `alter table sb_internal.message enable row level security`, "sb_internal.message"},
	{"inner_callers", `create function public.f() returns integer[] language sql begin atomic select sb_internal._visible(current_user, 'queue'); end`, "function f()"},
	{"inner_callers", `create function sb.f(who name) returns integer[] language sql begin atomic select sb_internal._visible(f.who, 'queue'); end`, "function sb.f(name)"},
	{"inner_callers", `create view sb.v as select sb_internal._visible(current_user, 'queue'), sb_internal._visible(session_user, 'queue') as x`, "rule _RETURN on view sb.v"},
	{"internal_privileges", `grant usage on schema sb_internal to {role}`, "sb_internal"},
	{"internal_privileges", `grant select (message_body) on sb_internal.message to {role}`, "sb_internal.message"},
	{"internal_privileges", `grant usage on sequence sb_internal.queuing_order to {role}`, "sb_internal.queuing_order"},
	{"names", `create table sb_internal.t (id integer primary key, constraint x check (id > 0))`, "sb_internal.t.x"},
	{"overloads", `create function sb.receive(x integer) returns void language sql as ''`, "receive"},
	{"owners", `alter function sb.body_text owner to {role}`, "sb.body_text(bytea)"},
	{"owners", `alter table sb_internal.message owner to {role}`, "sb_internal.message"},
	{"owners", `alter schema sb_internal owner to {role}`, "sb_internal"},
	{"public_privileges", `create function sb_internal.f() returns integer language sql return 1`, "sb_internal.f()"},
	{"public_privileges", `grant select on sb.services to public`, "sb.services"},
	{"public_privileges", `grant usage on schema sb to public`, "sb"},
	{"replica_identity", `create table sb_internal.t ()`, "sb_internal.t"},
	{"search_paths", `create function sb_internal.f() returns integer language plpgsql as 'begin return now(); end'`, "sb_internal.f()"},
	{"search_paths", `alter function sb_internal._run_validator security definer`, "sb_internal._run_validator(text,text,bytea[])"},
	{"strict_functions", `alter function sb.set_state strict`, "sb.set_state(uuid,jsonb)"},
	{"verbs_are_invoker", `alter function sb.begin_dialog security definer`, "sb.begin_dialog(text,text,text,text,uuid,uuid,interval,boolean)"},
	{"view_functions_are_definer", `alter function sb_internal._visible security invoker`, "sb_internal._visible(name,text)"},
	{"views_are_barriers", `create or replace view sb.broker with (security_barrier = false) as select b.broker_instance, b.is_broker_enabled, b.is_honor_broker_priority_on, null::bigint as schema_version from sb_internal.broker as b`, "sb.broker"},
}

// A check that finds nothing proves something only if it finds what it is for.
func TestChecksFind(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	role := db.CreateRole(t, "role")
	superuser(t, db, "grant create on database "+db.Name+" to "+role)
	files, err := filepath.Glob("../../sql/checks/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no checks: %v", err)
	}
	s := db.SessionAs(t, "superuser", "")
	s.Exec("set role " + db.Owner)
	s.Exec("select sb.create_queue('Q')")
	s.Exec("reset role")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		check, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, o := range offences {
			if o.check != name {
				continue
			}
			found = true
			s.Begin()
			s.Exec(strings.ReplaceAll(o.sql, "{role}", role))
			rows := s.Query(string(check))
			if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, o.object+"|") }) {
				t.Errorf("%s does not find %s in %s; it says %q", name, o.object, o.sql, rows)
			}
			s.Rollback()
		}
		if !found {
			t.Errorf("nothing shows what %s finds", name)
		}
	}
}
