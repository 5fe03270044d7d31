package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// routine writes a function; %-free, so that bodies may hold anything.
func routine(name, args, returns, body string) string {
	declared := "create or replace function " + name + "(" + args + ")\n  returns " + returns + "\n"
	if strings.HasPrefix(body, "begin atomic") {
		return declared + "  language sql\n" + body + ";\n"
	}
	return declared + "  language plpgsql\nas $$\n" + body + "\n$$;\n"
}

// released is what the migrations of the cases below start from. Everything leans on _base: early, as views and
// SQL-standard bodies do, or late, as text does.
func released() map[string]string {
	return map[string]string{
		orderTxt: "functions/internal/\nfunctions/verbs/\nviews/\ntriggers/t.sql\ngrants/grants.sql\n",
		"sql/functions/internal/_base.sql": routine("sb_internal._base", "a integer, b text default 'x'", "integer",
			"begin return _base.a; end") + "comment on function sb_internal._base(integer, text) is 'Base.';\n",
		"sql/functions/internal/_late.sql":  routine("sb_internal._late", "a integer", "integer", "begin return sb_internal._base(_late.a); end"),
		"sql/functions/internal/_stamp.sql": routine("sb_internal._stamp", "", "trigger", "begin return new; end"),
		"sql/functions/verbs/ask.sql":       routine("sb.ask", "a integer", "integer", "begin atomic select sb_internal._base(ask.a); end"),
		"sql/functions/verbs/tell.sql":      routine("sb.tell", "a integer", "integer", "begin atomic select sb.ask(tell.a); end"),
		"sql/views/first.sql":               "create or replace view sb.first\n  with (security_barrier = true)\nas\nselect sb_internal._base(m.version::integer) as n,\n       m.name\n  from sb_internal.meta as m;\n",
		"sql/views/second.sql":              "create or replace view sb.second\n  with (security_barrier = true)\nas\nselect f.n from sb.first as f;\n",
		"sql/triggers/t.sql":                "create or replace trigger stamp\n  before insert on sb_internal.t\n  for each row execute function sb_internal._stamp();\n",
		"sql/grants/grants.sql":             "grant select on all tables in schema sb to pg_monitor;\ngrant execute on all routines in schema sb to pg_monitor;\n",
		"migrations/000001_schema.up.sql": lockTimeout + "create schema sb;\ncreate schema if not exists sb_internal;\n" +
			"create table sb_internal.meta (version bigint, name text);\ncreate table sb_internal.t (id integer);\n" +
			"insert into sb_internal.meta (version, name) values (1, 'schema');\n",
		"migrations/000001_schema.down.sql": lockTimeout + "drop schema sb cascade;\n",
		errorsCSV:                           "sqlstate,go_name,message,hint,sql_server_number\nSB001,Wrong,wrong,,\n",
	}
}

// Whatever changes in the sources, up leads to what they say, exactly as installing them anew does, and down back to
// what was there; and it does not disturb what somebody else has built on what stays.
func TestChangesOfShape(t *testing.T) {
	t.Parallel()
	replace := func(path string, pairs ...string) map[string]string {
		text := strings.NewReplacer(pairs...).Replace(released()[path])
		if text == released()[path] {
			t.Fatalf("%s: %q changes nothing", path, pairs)
		}
		return map[string]string{path: text}
	}
	join := func(edits ...map[string]string) map[string]string {
		all := map[string]string{}
		for _, edit := range edits {
			maps.Copy(all, edit)
		}
		return all
	}
	const base, late, ask, tell = "sql/functions/internal/_base.sql", "sql/functions/internal/_late.sql", "sql/functions/verbs/ask.sql", "sql/functions/verbs/tell.sql"
	const first, second = "sql/views/first.sql", "sql/views/second.sql"
	cases := map[string]map[string]string{ // path: new text, or nothing when it goes
		"body":              replace(base, "return _base.a", "return _base.a + 1"),
		"argument renamed":  replace(base, "a integer", "c integer", "_base.a", "_base.c"),
		"argument added":    replace(base, "b text default 'x'", "b text default 'x', c integer default 1", "(integer, text)", "(integer, text, integer)"),
		"argument dropped":  replace(base, ", b text default 'x'", "", "(integer, text)", "(integer)"),
		"argument's type":   replace(base, "b text", "b bytea", "(integer, text)", "(integer, bytea)"),
		"default dropped":   join(replace(base, " default 'x'", ""), replace(late, "_late.a", "_late.a, 'y'"), replace(ask, "ask.a", "ask.a, 'y'"), replace(first, "::integer", "::integer, 'y'")),
		"default changed":   replace(base, "'x'", "'(, '"),
		"default added":     replace(late, "a integer", "a integer default 2"),
		"result":            join(replace(base, "returns integer", "returns bigint"), replace(ask, "returns integer", "returns bigint"), replace(tell, "returns integer", "returns bigint"), replace(first, "integer) as n", "integer)::bigint as n"), replace(second, "f.n", "f.n::bigint")),
		"table as result":   replace(late, "returns integer", "returns table (n integer, m text)", "return sb_internal._base(_late.a)", "return query select 1, ''"),
		"overload added":    replace(ask, "create or", routine("sb.ask", "a text, b numeric(5, 2)[] default '{}'", "text", "begin return a; end")+"create or"),
		"becomes procedure": {late: "create or replace procedure sb_internal._late(inout a integer, variadic b text[])\n  language plpgsql\nas $$ begin null; end $$;\n"},
		"becomes a view": join(replace(second, "sb.second", "sb.seconds"), map[string]string{second: ""},
			map[string]string{"sql/views/seconds.sql": strings.Replace(released()[second], "sb.second", "sb.seconds", 1)}),
		"view grows":           replace(first, "m.name\n", "m.name,\n       case when true then 1 end as one\n"),
		"view's column goes":   replace(first, ",\n       m.name", ""),
		"view's column moves":  replace(first, "select", "select 1 as one,"),
		"view's column's type": replace(second, "f.n", "f.n::bigint"),
		"all is new":           {ask: "", tell: "", base: "", late: "", first: "", second: "", "sql/views/third.sql": "create or replace view sb.third\n  with (security_barrier = true)\nas\nselect 1 as one;\n"},
		"internal one goes":    {late: ""},
		"trigger renamed":      replace("sql/triggers/t.sql", "stamp\n", "stamped\n"),
		"trigger goes":         {"sql/triggers/t.sql": "", orderTxt: strings.Replace(released()[orderTxt], "triggers/t.sql\n", "", 1), "sql/functions/internal/_stamp.sql": ""},
	}
	// Names of sb that a case drops may not be built upon by others.
	const others = `
		create view public.on_first as select f.n from sb.first as f;
		create function public.on_tell() returns integer language sql begin atomic select sb.tell(1); end`
	inTheWay := map[string]string{
		"result": "sb.", "all is new": "sb.", "view's column goes": "sb.\"first~old\"", "view's column moves": "sb.\"first~old\"",
	}
	for name, edits := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := repo(t.TempDir())
			for path, text := range released() {
				r.put(t, path, text)
			}
			r.mustRun(t, "snapshot")
			r.release(t)
			db := pgtest.Empty(t)
			owner := db.Superuser(t)
			execute(t, owner, "create schema sb_internal")
			execute(t, owner, r.get(t, "migrations/000001_schema.up.sql"), r.get(t, "migrations/000002_functions.up.sql"))
			before := fingerprint(t, owner)

			r.edit(t, edits)
			r.mustRun(t, "snapshot")
			if err := r.fresh(r.snapshotFiles); err != nil {
				t.Error(err)
			}
			up, down := r.get(t, "migrations/000003_functions.up.sql"), r.get(t, "migrations/000003_functions.down.sql")
			var l linter
			if l.migration(migration{version: 3, name: "functions", up: up, down: down}); l != nil {
				t.Error(l)
			}
			execute(t, owner, up)
			after := fingerprint(t, owner)
			execute(t, owner, down)
			if diff := cmp.Diff(before, fingerprint(t, owner)); diff != "" {
				t.Errorf("down leaves (-before +after):\n%s\n%s", diff, down)
			}

			// The same sources, installed anew.
			anew := repo(t.TempDir())
			for path, text := range released() {
				anew.put(t, path, text)
			}
			anew.edit(t, edits)
			anew.mustRun(t, "snapshot")
			fresh := pgtest.Empty(t).Superuser(t)
			execute(t, fresh, "create schema sb_internal")
			execute(t, fresh, anew.get(t, "migrations/000001_schema.up.sql"), anew.get(t, "migrations/000002_functions.up.sql"))
			if diff := cmp.Diff(fingerprint(t, fresh), after); diff != "" {
				t.Errorf("up leaves (-new installation +upgrade):\n%s\n%s", diff, up)
			}

			execute(t, owner, others)
			err := owner.PgConn().Exec(t.Context(), up).Close()
			if want := inTheWay[name]; want == "" && err != nil {
				t.Errorf("with objects of others: %v\n%s", err, up)
			} else if want != "" && pgtest.SQLState(err) != "2BP01" { // dependent_objects_still_exist
				t.Errorf("with objects of others: %v, want them to stop it", err)
			}
		})
	}
}

// edit writes files and removes those without text.
func (r repo) edit(t *testing.T, edits map[string]string) {
	t.Helper()
	for path, text := range edits {
		r.put(t, path, text)
		if text == "" {
			r.remove(t, path)
		}
	}
	// A folder of order.txt must exist.
	for _, folder := range []string{"functions/internal", "functions/verbs", "views"} {
		if files, err := filepath.Glob(r.abs("sql/" + folder + "/*")); err != nil || files == nil {
			r.put(t, "sql/"+folder+"/.keep", "")
		}
	}
}

func execute(t *testing.T, conn *pgx.Conn, files ...string) {
	t.Helper()
	for _, text := range files {
		if err := conn.PgConn().Exec(t.Context(), text).Close(); err != nil {
			_, generated, _ := strings.Cut(text, "_raise.sql\n")
			t.Fatalf("%v\n…%s", err, generated)
		}
	}
}

// fingerprint is all that the sources can say: definitions, rights, comments.
func fingerprint(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	list := pgtest.Strings(t, conn, `
		select pg_get_functiondef(p.oid) || p.proacl::text || coalesce(obj_description(p.oid, 'pg_proc'), '')
		  from pg_proc as p where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
		union all
		select c.relname || pg_get_viewdef(c.oid) || c.reloptions::text || c.relacl::text
		       || (select string_agg(concat_ws(' ', a.attname, a.atttypid::regtype), ', ' order by a.attnum) from pg_attribute as a where a.attrelid = c.oid)
		  from pg_class as c where c.relnamespace = 'sb'::regnamespace and c.relkind = 'v'
		union all
		select pg_get_triggerdef(g.oid) from pg_trigger as g where g.tgrelid = 'sb_internal.t'::regclass`)
	slices.Sort(list)
	return list
}

// In the files: what is put aside comes first, what is dropped last, and nothing that can stay is put aside.
func TestPutAside(t *testing.T) {
	r := repo(t.TempDir())
	for path, text := range released() {
		r.put(t, path, text)
	}
	r.mustRun(t, "snapshot")
	r.release(t)
	base := r.get(t, "sql/functions/internal/_base.sql")
	r.put(t, "sql/functions/internal/_base.sql", strings.ReplaceAll(strings.Replace(base, "b text default 'x'", "b bytea", 1), "text", "bytea"))
	r.mustRun(t, "snapshot")
	up, down := r.get(t, "migrations/000003_functions.up.sql"), r.get(t, "migrations/000003_functions.down.sql")
	// Not _late, whose body is text, nor tell, which calls only ask, nor second, which reads only first.
	inOrder(t, up, lockTimeout, `alter function sb_internal._base(a integer, b text) rename to "_base~old";`, "begin functions/internal/_base.sql",
		"begin functions/verbs/ask.sql", "begin views/first.sql", "begin grants/grants.sql", "like '%~old'", "values (3, 'functions');")
	inOrder(t, down, lockTimeout, `alter function sb_internal._base(a integer, b bytea) rename to "_base~old";`, "begin functions/internal/_base.sql",
		base, "begin functions/verbs/ask.sql", "begin views/first.sql", "begin grants/grants.sql", "like '%~old'", "where version = 3;")
	for _, text := range []string{up, down} {
		if n := strings.Count(text, "sqlgen:begin"); n != 4 {
			t.Errorf("%d blocks, want 4:\n%s", n, text)
		}
	}

	r.put(t, "sql/functions/internal/_base.sql", strings.Replace(base, "return _", "return 1 + _", 1))
	r.mustRun(t, "snapshot")
	if up := r.get(t, "migrations/000003_functions.up.sql"); strings.Contains(up, aside) || strings.Contains(up, "ask.sql") {
		t.Errorf("a change of the body concerns nobody else:\n%s", up)
	}
}
