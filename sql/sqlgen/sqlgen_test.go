package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newRepo writes a small repository: one function in each schema, a view and grants.
func newRepo(t *testing.T) repo {
	t.Helper()
	r := repo(t.TempDir())
	for path, text := range map[string]string{
		errorsCSV: "sqlstate,go_name,message,hint,sql_server_number\n" +
			"S8426,ConversationNotFound,conversation %s does not exist,it's gone,8426\n" +
			"SB001,Other,100%% wrong,,\n",
		orderTxt:                          "# internals first\nfunctions/internal/\nfunctions/verbs/send.sql # before the rest\nfunctions/verbs/\n\nviews/\ngrants/grants.sql\n",
		"sql/functions/internal/_now.sql": function("sb_internal", "_now", "  set search_path = pg_catalog, pg_temp\n"),
		"sql/functions/verbs/end.sql":     function("sb", "end", ""),
		"sql/functions/verbs/send.sql":    function("sb", "send", ""),
		"sql/views/broker.sql": "create or replace view sb.broker\n  with (security_barrier = true)\nas select 1 as one;\n" +
			"comment on view sb.broker is 'One.';\n",
		"sql/grants/grants.sql":             "revoke all on all tables in schema sb from public;\n",
		"migrations/000001_schema.up.sql":   lockTimeout + "insert into sb_internal.meta (version, name) values (1, 'schema');\n",
		"migrations/000001_schema.down.sql": lockTimeout + "drop schema sb;\n",
		"sql/checks/not_a_source.sql":       "select 1;\n",
	} {
		r.put(t, path, text)
	}
	return r
}

func function(schema, name, set string) string {
	return fmt.Sprintf(`create or replace function %[1]s.%[2]s(a integer)
  returns table (
    b integer
  )
  language plpgsql
  volatile
  parallel unsafe
  security invoker
%[3]sas $$
begin
  return query select case when '$x$' ~ $re$['"]$re$ then 1 else 2 end;
end
$$;
comment on function %[1]s.%[2]s(integer) is 'Does it; or not.';
revoke all on function %[1]s.%[2]s(integer) from public;
`, schema, name, set)
}

func (r repo) put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.abs(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.abs(path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r repo) remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(r.abs(path)); err != nil {
		t.Fatal(err)
	}
}

func (r repo) get(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(r.abs(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (r repo) mustRun(t *testing.T, command string) {
	t.Helper()
	if err := run(string(r), command); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

func (r repo) mustFail(t *testing.T, command, want string) {
	t.Helper()
	if err := run(string(r), command); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v\nwant an error with %q", command, err, want)
	}
}

// release freezes all migrations.
func (r repo) release(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob(r.abs("migrations/*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	var sums strings.Builder
	for _, name := range names {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(r.get(t, "migrations/"+filepath.Base(name)))), filepath.Base(name))
	}
	r.put(t, sumsFile, sums.String())
}

func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		_, rest, found := strings.Cut(text, part)
		if !found {
			t.Fatalf("%q is missing or not in its place", part)
		}
		text = rest
	}
}

func TestSnapshot(t *testing.T) {
	r := newRepo(t)
	r.mustFail(t, "check", "out of date")
	r.mustRun(t, "snapshot")
	r.mustRun(t, "check")

	const up, down = "migrations/000002_functions.up.sql", "migrations/000002_functions.down.sql"
	inOrder(t, r.get(t, up), lockTimeout, "begin functions/internal/_now.sql", "begin functions/internal/_raise.sql",
		"begin functions/verbs/send.sql", "begin functions/verbs/end.sql", "begin views/broker.sql", "begin grants/grants.sql",
		"values (2, 'functions');")
	inOrder(t, r.get(t, down), lockTimeout, "drop %s %s", "delete from sb_internal.meta where version = 2;")
	inOrder(t, r.get(t, plainSQL), `\set ON_ERROR_STOP on`, "\nbegin;", "values (1, 'schema')", "values (2, 'functions')",
		"schema_migrations(version, dirty) values (2, false);", "\ncommit;")

	// Still open: an edit rewrites the block in its place.
	changed := strings.Replace(r.get(t, "sql/functions/verbs/send.sql"), "'Does it;", "'Now does it;", 1)
	r.put(t, "sql/functions/verbs/send.sql", changed)
	r.mustFail(t, "check", up)
	r.mustRun(t, "snapshot")
	r.mustRun(t, "check")
	if text := r.get(t, up); strings.Count(text, "begin functions/verbs/send.sql") != 1 || !strings.Contains(text, changed) {
		t.Error("the block was not replaced")
	}
}

func TestSnapshotAfterRelease(t *testing.T) {
	r := newRepo(t)
	r.mustRun(t, "snapshot")
	r.release(t)
	r.mustRun(t, "check")
	r.mustRun(t, "snapshot") // nothing changed, so no migration
	const up, down = "migrations/000003_functions.up.sql", "migrations/000003_functions.down.sql"
	if _, err := os.Stat(r.abs(up)); err == nil {
		t.Fatal("a migration for nothing")
	}

	old := r.get(t, "sql/functions/verbs/send.sql")
	r.put(t, "sql/functions/verbs/send.sql", strings.Replace(old, "'Does it;", "'Now does it;", 1))
	r.put(t, "sql/functions/verbs/move.sql", function("sb", "move", ""))
	r.remove(t, "sql/functions/verbs/end.sql")
	r.mustFail(t, "check", up)
	r.mustRun(t, "snapshot")
	r.mustRun(t, "check")
	inOrder(t, r.get(t, up), lockTimeout, `alter function sb.end(a integer) rename to "end~old";`, "begin functions/verbs/send.sql",
		"begin functions/verbs/move.sql", "begin grants/grants.sql", "sqlgen:drop functions/verbs/end.sql", "like '%~old'", "values (3, 'functions');")
	if strings.Contains(r.get(t, up), "broker.sql") {
		t.Error("an unchanged source got a block")
	}
	// Down puts back what was there, then drops what is new.
	inOrder(t, r.get(t, down), lockTimeout, `alter function sb.move(a integer) rename to "move~old";`, "begin functions/verbs/send.sql", old,
		"begin functions/verbs/end.sql", "begin grants/grants.sql", "like '%~old'", "delete from sb_internal.meta where version = 3;")

	// What a person writes around the generated region stays.
	r.put(t, up, strings.Replace(r.get(t, up), generatedFrom, "alter table sb_internal.t add c integer;\n"+generatedFrom, 1))
	r.put(t, down, r.get(t, down)+"alter table sb_internal.t drop c;\n")
	r.put(t, "sql/functions/verbs/send.sql", strings.Replace(old, "'Does it;", "'Once more;", 1))
	r.mustRun(t, "snapshot")
	r.mustRun(t, "check")
	inOrder(t, r.get(t, up), "add c integer;", generatedFrom, "'Once more;", generatedTo)
	inOrder(t, r.get(t, down), generatedFrom, generatedTo, "drop c;")

	// What is released is frozen.
	r.release(t)
	r.put(t, "migrations/000002_functions.down.sql", lockTimeout)
	r.mustFail(t, "check", "000002_functions.down.sql is released")
	r.mustFail(t, "snapshot", "000002_functions.down.sql is released")
}

func TestSnapshotRefuses(t *testing.T) {
	tests := map[string]struct{ path, text, want string }{
		"unlisted source":    {"sql/functions/other/f.sql", "select 1;\n", "functions/other/f.sql is not listed"},
		"missing source":     {orderTxt, "functions/nowhere.sql\n", "nowhere.sql"},
		"missing folder":     {orderTxt, "nowhere/\n", "nowhere"},
		"listed twice":       {orderTxt, "views/broker.sql\nviews/broker.sql\n", "listed twice"},
		"no last newline":    {"sql/views/broker.sql", "select 1;", "must end with a newline"},
		"marker in a source": {"sql/views/broker.sql", "-- sqlgen:end x\n", "marker"},
		"odd file name":      {"migrations/3_x.sql", "", "the name is not"},
		"gap in versions":    {"migrations/000004_x.up.sql", "", "is missing"},
		"two names":          {"migrations/000001_x.up.sql", "", "has two names"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.put(t, test.path, test.text)
			r.mustFail(t, "snapshot", test.want)
		})
	}
}

func TestErrors(t *testing.T) {
	r := newRepo(t)
	r.mustRun(t, "errors")
	inOrder(t, r.get(t, raiseSQL), "when 'S8426' then", "'conversation %s does not exist'", "'it''s gone'",
		"'sql_server_number=8426'", "when 'SB001' then", "'100%% wrong'")
	code := r.get(t, errcodeGo)
	inOrder(t, code, "// CodeConversationNotFound: conversation %s does not exist.", `CodeConversationNotFound Code = "S8426"`,
		`CodeOther Code = "SB001"`, "CodeConversationNotFound: 8426,", "func (c Code) SQLServerNumber() int")
	if strings.Contains(code, "CodeOther:  ") {
		t.Error("a code without a number is in the map of numbers")
	}

	const header = "sqlstate,go_name,message,hint,sql_server_number\n"
	for row, want := range map[string]string{
		"s8426,A,m,h,":                "five digits or capitals",
		"S842,A,m,h,":                 "five digits or capitals",
		"S8426,a,m,h,":                "not an exported Go identifier",
		"S8426,A,,h,":                 "message is empty",
		"S8426,A,m,h,x":               "not a positive integer",
		"S8426,A,m,h,0":               "not a positive integer",
		"S8426,A,m %d,h,":             "placeholder",
		"S8426,A,50% off,h,":          "placeholder",
		"S8426,A,m%,h,":               "placeholder",
		"S8426,A,m,h,\nS8426,B,m,h,":  "listed twice",
		"S8426,A,m,h,\nS8427,A,m,h,":  "listed twice",
		"S8426,A,m,h":                 "wrong number of fields",
		"S8426,A,m,h,1,\"unfinished,": "errors.csv",
	} {
		if _, err := parseErrors([]byte(header + row + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", row, err, want)
		}
	}
}

func TestLint(t *testing.T) {
	good := function("sb_internal", "_f", "  set search_path = pg_catalog, pg_temp\n")
	replace := func(pairs ...string) string {
		text := strings.NewReplacer(pairs...).Replace(good)
		if text == good {
			t.Fatalf("%q changes nothing", pairs)
		}
		return text
	}
	const atomic = `create or replace function sb_internal._f(a integer)
  returns integer
  language sql
  stable
  parallel safe
  security definer
  set search_path = pg_catalog, pg_temp
begin atomic
  select case when _f.a = 1 then 1 end;
  select 2;
end;
`
	notes := "comment on function sb_internal._f(integer) is 'x';\nrevoke all on function sb_internal._f(integer) from public;\n"
	tests := map[string]struct{ text, want string }{
		"good":                        {good, ""},
		"begin atomic":                {atomic + notes, ""},
		"long string alone":           {good + "comment on function sb_internal._f(integer) is\n  '" + strings.Repeat("x", 200) + "';\n", ""},
		"two overloads":               {good + strings.ReplaceAll(good, "integer)", "text)"), ""},
		"invoker step":                {"-- User code: no set clause.\n" + replace("  set search_path = pg_catalog, pg_temp\n", ""), ""},
		"tab":                         {replace("  returns", "\treturns"), "tab"},
		"trailing space":              {replace("volatile", "volatile "), "trailing space"},
		"too wide":                    {good + "-- " + strings.Repeat("x", 140) + "\n", "longer than 140"},
		"upper-case keyword":          {replace("returns", "RETURNS"), "lower case"},
		"upper-case in the body":      {replace("return query select", "return query SELECT"), "lower case"},
		"variable_conflict":           {replace("as $$\n", "as $$\n#variable_conflict use_column\n"), "#variable_conflict"},
		"bare raise":                  {replace("begin\n", "begin\n  raise exception 'no';\n"), "bare raise"},
		"not repeatable":              {good + "create table t ();\n", "may not run twice"},
		"insert":                      {good + "insert into t values (1);\n", "may not run twice"},
		"insert on conflict":          {good + "insert into t values (1) on conflict do nothing;\n", ""},
		"plain create":                {replace("create or replace", "create"), "may not run twice"},
		"other name":                  {replace("_f(", "_g("), "does not belong here"},
		"other schema":                {replace("sb_internal.", "sb."), "does not belong here"},
		"no function":                 {"comment on schema sb is 'x';\n", "no create or replace function"},
		"a view":                      {good + "create or replace view sb.v as select 1 as one;\n", "in a file for functions"},
		"no comment":                  {good[:strings.Index(good, "comment on")] + notes[strings.Index(notes, "revoke"):], "comment on function"},
		"no revoke":                   {good[:strings.Index(good, "revoke")], "revoke all"},
		"revoke from somebody":        {replace("from public", "from somebody"), "revoke all"},
		"one comment for two":         {good + atomic + notes[strings.Index(notes, "revoke"):], "comment on function"},
		"no language":                 {replace("  language plpgsql\n", ""), `no line "language" before`},
		"no volatility":               {replace("  volatile\n", ""), "immutable, stable or volatile"},
		"no parallel":                 {replace("  parallel unsafe\n", ""), "parallel safe"},
		"no security":                 {replace("  security invoker\n", ""), "security definer or invoker"},
		"wrong order":                 {replace("  volatile\n  parallel unsafe\n", "  parallel unsafe\n  volatile\n"), "before"},
		"two clauses a line":          {replace("  volatile\n  parallel unsafe\n", "  volatile parallel unsafe\n"), "no line"},
		"no search_path":              {replace("  set search_path = pg_catalog, pg_temp\n", ""), "set search_path"},
		"path without pg_temp":        {replace("pg_catalog, pg_temp", "pg_catalog"), "set search_path"},
		"definer without search_path": {"-- no set clause\n" + replace("  set search_path = pg_catalog, pg_temp\n", "", "invoker", "definer"), "set search_path"},
		"strict with side effects":    {replace("  set search_path", "  strict\n  set search_path"), "strict"},
		"body on the same line":       {replace("pg_temp\nas $$", "pg_temp as $$"), "the body must begin a line"},
		"unterminated body":           {good + "do $$ begin\n", "unterminated"},
		"unterminated string":         {good + "do 'x\n", "unterminated"},
		"unterminated comment":        {good + "/* /* */\n", "unterminated"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var l linter
			l.source(source{"functions/internal/_f.sql", test.text})
			var all strings.Builder
			for _, err := range l {
				fmt.Fprintln(&all, err)
			}
			if test.want == "" && len(l) > 0 || !strings.Contains(all.String(), test.want) {
				t.Errorf("complaints:\n%swant %q", all.String(), test.want)
			}
		})
	}
}

func TestLintViews(t *testing.T) {
	const good = "create or replace view sb.v with (security_barrier) as\nselect 1 as one;\ncomment on view sb.v is 'x';\n"
	for text, want := range map[string]string{
		good:                                     "",
		strings.ReplaceAll(good, "sb.v", "sb.w"): "does not belong here",
		strings.Replace(good, " with (security_barrier)", "", 1):                    "security_barrier",
		strings.Replace(good, "comment on view", "comment on t", 1):                 "comment on view",
		strings.Replace(good, "create or replace", "create", 1):                     "may not run twice",
		good + "create or replace view sb.v with (security_barrier) as select 2;\n": "exactly one",
	} {
		var l linter
		l.source(source{"views/v.sql", text})
		if joined := fmt.Sprint([]error(l)); want == "" && len(l) > 0 || !strings.Contains(joined, want) {
			t.Errorf("%q: %s, want %q", text, joined, want)
		}
	}
}

func TestLintMigrations(t *testing.T) {
	const stamp = "insert into sb_internal.meta (version, name) values (1, 'x');\n"
	for up, want := range map[string]string{
		lockTimeout + stamp:               "",
		stamp:                             "must begin with set local lock_timeout",
		lockTimeout:                       "must stamp itself once",
		lockTimeout + stamp + stamp:       "must stamp itself once",
		lockTimeout + "begin;\n" + stamp:  "one implicit transaction",
		lockTimeout + stamp + "commit;\n": "one implicit transaction",
		lockTimeout + stamp + "create index concurrently i on t (a);\n": "cannot run in a transaction",
		"": "missing or empty",
	} {
		var l linter
		l.migration(migration{version: 1, name: "x", up: up, down: lockTimeout})
		if joined := fmt.Sprint([]error(l)); want == "" && len(l) > 0 || !strings.Contains(joined, want) {
			t.Errorf("%q: %s, want %q", up, joined, want)
		}
	}
}

// The repository's own generated files are what the generator makes of it today.
func TestRepositoryIsUpToDate(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if err := run(root, "check"); err != nil {
		t.Error(err)
	}
}
