package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// beginning is what each script below begins with, seven lines.
const beginning = `session a b
setup: drop table if exists x; create table x (n integer primary key, t text); insert into x values (1, 'one'), (2, null)
setup: select sb.new_broker(), sb.create_queue('Q', if_not_exists => true), sb.create_service('S', 'Q', '{DEFAULT}', if_not_exists => true)
setup: grant usage on schema public to public
setup: select sb.send(sb.begin_dialog('S', 'S'), 'DEFAULT', 'hello')
a: select gen_random_uuid() -> $u

`

// scripts that are right, and what makes each of them wrong: a check that lets a wrong scenario pass is worse than none.
var wrong = map[string]struct {
	right string
	wrong string // is to fail
	want  string // its error contains
}{
	"value":            {"a: select * from x where n = 1\n| 1 | one", "a: select * from x where n = 1\n| 1 | two", ":8: select * from x where n = 1\nwant:\n  | 1 | two\ngot:\n  | 1 | one"},
	"null":             {"a: select t from x where n = 2\n| null", "a: select t from x where n = 2\n| \"null\"", "| null"},
	"empty is no null": {"a: select ''\n| \"\"", "a: select ''\n| null", "| \"\""},
	"missing row":      {"a: select n from x\n| 1\n| 2", "a: select n from x\n| 1", "| 2"},
	"extra row":        {"a: select n from x where n = 1\n| 1", "a: select n from x where n = 1\n| 1\n| 2", "want:"},
	"no row":           {"a: select n from x where n = 3\n(no rows)", "a: select n from x\n(no rows)", "| 1"},
	"order":            {"a: select n from x order by n\n| 1\n| 2", "a: select n from x order by n desc\n| 1\n| 2", "| 2\n  | 1"},
	"unordered":        {"a: select n from x order by n desc\n(unordered)\n| 1\n| 2", "a: select n from x\n(unordered)\n| 1\n| 1", "(unordered)"},
	"columns":          {"a: select n, n from x where n = 1\n| 1 | 1", "a: select n, n from x where n = 1\n| 1", "| 1 | 1"},
	"to be written":    {"a: select 1\n| 1", "a: select 1\n| ?", "| 1"},
	"uuid":             {"a: select $u, gen_random_uuid()\n| $u | <uuid>", "a: select 'x'\n| <uuid>", "| x"},
	"int":              {"a: select -7\n| <int>", "a: select 'x'\n| <int>", "| x"},
	"time":             {"a: select now()\n| <time>", "a: select 'x'\n| <time>", "| x"},
	"any":              {"a: select 'x', null\n| <any> | <any>", "a: select 'x'\n| <any> | <any>", "| <any>"},
	"pattern":          {"a: select 'abc'\n| ~ ^a.c$", "a: select 'abcd'\n| ~ ^a.c$", "| abcd"},
	"variable":         {"a: select $u\n| $u", "a: select gen_random_uuid()\n| $u", "| <uuid>"},
	"captured in a row": {
		"a: select n, t from x where n = 1\n| -> $n | -> $t\na: select $n || $t\n| 1one",
		"a: select n, t from x where n = 1\n| -> $n | two\na: select $n", "| one",
	},
	"nothing to capture": {"a: select 1 -> $x\na: select $x::integer\n| 1", "a: select n from x where n = 3 -> $x", ":8: 0 rows cannot be captured"},
	"null captured":      {"a: select 1 -> $x", "a: select null -> $x", "$x would be null"},
	"unknown variable":   {"a: select $u", "a: select $v", "there is no variable $v"},
	"success":            {"a: select 1", "a: select 1 / 0", "! 22012 division by zero"},
	"error":              {"a: select 1 / 0\n! 22012 by zero", "a: select 1\n! 22012", "| 1"},
	"code":               {"a: select * from sb.receive('R')\n! S0208 queue R", "a: select * from sb.receive('R')\n! S9617", "! S0208 queue R does not exist"},
	"message":            {"a: select * from sb.receive('R')\n! S0208 queue R", "a: select * from sb.receive('R')\n! S0208 queue Q", "! S0208 queue R does not exist"},
	"lost":               {"kill a\na: select 1\n! lost", "a: select 1 / 0\n! lost", "! 22012"},
	"commit":             {"a: begin\na: commit", "a: begin\na: select 1 / 0\n! 22012\na: commit", ":11: commit\nwant:\n  success\ngot:\n  (rolled back)"},
	"rolled back":        {"a: begin\na: select 1 / 0\n! 22012\na: commit\n(rolled back)", "a: begin\na: commit\n(rolled back)", "want:\n  (rolled back)"},
	"blocks": {
		"a: begin\na: delete from x where n = 1\nb: delete from x where n = 1\nblocks on a\na: commit\nb resumes",
		"a: begin\na: delete from x where n = 1\nb: delete from x where n = 2\nblocks on a\na: commit\nb resumes", ":10: b does not block: DELETE 1",
	},
	"blocks on the right one": {
		"a: begin\na: delete from x\nb: delete from x\nblocks on a\na: rollback\nb resumes",
		"a: begin\na: delete from x\nb: delete from x\nblocks on setup\na: rollback\nb resumes", "b does not block: state|wait|event|blocked by = active|Lock|transactionid|a",
	},
	"waits":  {"a: select 1 from sb.receive('R', timeout => '1 s')\n! S0208\na: select sb.body_text(message_body) from sb.receive('Q')\n| hello\na: select * from sb.receive('Q', timeout => '60 s')\nwaits\ncancel a\na resumes\n! 57014", "a: select * from sb.receive('Q', timeout => '60 s')\nwaits\na resumes", "a does not wait: SELECT 1"},
	"resume": {"a: select n from x where n = 1\nruns\na resumes\n| 1", "a: select n from x where n = 1\nruns\na resumes\n| 2", ":10: a: \nwant:\n  | 2\ngot:\n  | 1"},
	"eventually": {
		"a: select pg_sleep(0.2), n from x where n = 2 for update\nruns\neventually b: select count(*) from pg_stat_activity where application_name = 'a' and state = 'idle'\n| 1\na resumes",
		"eventually 300ms b: select n from x where n = 1\n| 2", "| 1",
	},
	"notified":   {"a: listen c\nb: notify c, 'x'\nnotified a\n| c | x\nnotified a\n(no rows)", "a: listen c\nb: notify c, 'x'\nnotified a\n(no rows)", "| c | x"},
	"notified 2": {"a: listen c\nnotified a\n(no rows)", "a: listen c\nnotified a\n| c | x", "(no rows)"},
	"pass": {
		"a: select sb.begin_conversation_timer(conversation_handle, '1 hour') from sb.conversation_endpoints where is_initiator\npass 61 minutes\na: select count(*) from sb.queue_messages\n| 2",
		"a: select sb.begin_conversation_timer(conversation_handle, '1 hour') from sb.conversation_endpoints where is_initiator\npass 59 minutes\na: select count(*) from sb.queue_messages\n| 2", "| 1",
	},
	"kill":       {"a: begin\na: delete from x\nkill a\nsetup: select count(*) from x\n| 2", "a: begin\na: delete from x\na: commit\nkill a\nsetup: select count(*) from x\n| 2", "| 0"},
	"disconnect": {"a: begin\na: delete from x\ndisconnect a\nconnect a\na: select count(*) from x\n| 2", "disconnect a\na: select 1", "lost"},
	"role":       {"role r1\nsession c as r1\nc: select sb.receive('Q')\n! 42501", "role r2\nsession c as r2\nc: select current_user\n| $owner", ":10: select current_user"},
	"identifier": {"role r3\nsetup: grant select on x to \"$r3\"\nsession c as r3\nc: select count(*) from x\n| 2", "role r4\nsession c as r4\nc: select count(*) from x\n| 2", "! 42501"},
	"repeat":     {"repeat 3\na: update x set n = n + 10\nend\na: select min(n) from x\n| 31", "repeat 3\na: update x set n = n + 10 returning n < 20\n| t\n| t\nend", ":9: update x set n = n + 10 returning n < 20\nwant:\n  | t\n  | t\ngot:\n  | f\n  | f\nround 2"},
	"dollar quotes": {
		"a: do $x$\n  begin\n\n    perform 1;\n  end $x$\na: do $$ begin perform $u::uuid; end $$", "a: do $$ begin perform $v; end $$", "there is no variable $v",
	},
	"include": {"include ok.sql\na: select ok()\n| 1", "include bad.sql", "bad.sql: ! 42601"},
}

func TestWrongScenarios(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, sql := range map[string]string{"ok.sql": "create or replace function ok() returns integer return 1;", "bad.sql": "nonsense"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(sql), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := pgtest.New(t) // one, since databases are what takes most of the time
	for name, c := range wrong {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{c.right, c.wrong} {
				s, err := parse(filepath.Join(dir, name+".txt"), beginning+text+"\n")
				if err != nil {
					t.Fatal(err)
				}
				if text == c.wrong {
					s.patience = 5 * time.Second // what never comes about is not waited for as long
				}
				err = play(t, db, s, false)
				switch {
				case text == c.right && err != nil:
					t.Errorf("right, and fails: %v", err)
				case text == c.wrong && (err == nil || !strings.HasPrefix(err.Error(), s.path+":") || !strings.Contains(err.Error(), c.want)):
					t.Errorf("fails with\n%v\nwant in it\n%s", err, c.want)
				}
			}
		})
	}
}

// The example of the documentation runs.
func TestDocumentedExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```\n# ")
	example, _, found := strings.Cut(example, "\n```")
	if !found {
		t.Fatal("there is no example")
	}
	s, err := parse(filepath.Join(dialogs, "example.txt"), "# "+example)
	if err == nil {
		err = play(t, pgtest.New(t), s, false)
	}
	if err != nil {
		t.Error(err)
	}
}

// What is wrong with a script by itself is found before anything runs.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"c: select 1":                               "x:1: there is no session c",
		"session a\na:":                             "x:2: nothing to do",
		"session a\n\nsession a":                    "x:3: there is a session a already",
		"session a as r":                            "x:1: there is no role r",
		"kill a":                                    "x:1: there is no session a",
		"nonsense":                                  `x:1: not understood: "nonsense"`,
		"| 1":                                       `x:1: not understood: "| 1"`,
		"repeat 3\nsetup: select 1":                 "x:1: repeat without end",
		"repeat x\nend":                             "x:1: ",
		"setup: select 1\nwaits for ever":           `x:2: not understood: "waits for ever"`,
		"setup: select 1\nwaits":                    "x:2: setup is still at work",
		"setup: select 1\nruns\nsetup: select 1":    "x:3: setup is still at work",
		"setup resumes":                             "x:1: setup is not at work",
		"setup: select 1\nblocks on a":              `x:2: there is no session "a"`,
		"setup: select 1 -> $a\nruns":               "x:2: a statement that goes on",
		"setup: select 1\n| 1 |  | 2":               "x:2: an empty cell",
		"setup: select 1\n| \"a\" b":                `x:2: "b" after the cell`,
		"setup: select 1\n! 42501\n| 1":             "x:3: an error stands alone",
		"setup: select 1\n(unordered)\n| -> $a":     "x:3: rows in no order cannot be captured",
		"eventually 3x setup: select 1":             "x:1: time: ",
		"session a b\na: select 1\nruns\nb resumes": "x:4: b is not at work",
	} {
		if _, err := parse("x", text+"\n"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// What -update writes is what comes out, keeps what matched, and matches itself from then on.
func TestUpdate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.txt")
	const before = `# A comment.
session a
a: select gen_random_uuid() -> $u
a: select v, 'same', $u from unnest(array['a', '', null, 'null', ' x', '$' || 'u', 'a|b', '<any>', '~x', '"q"', '->', '<r>x</r>', e'1\n2']) as v
| ?

a: select 1, now(), gen_random_uuid()
| 2 | <any> | -> $v
a: select $v <> $u
| f
a: select n from generate_series(1, 3) as n
(unordered)
| 3
a: select n from generate_series(1, 0) as n
| 1
a: select 1 / 0
| 1
a: select 1
! 22012
`
	const after = `# A comment.
session a
a: select gen_random_uuid() -> $u
a: select v, 'same', $u from unnest(array['a', '', null, 'null', ' x', '$' || 'u', 'a|b', '<any>', '~x', '"q"', '->', '<r>x</r>', e'1\n2']) as v
| a        | same | $u
| ""       | same | $u
| null     | same | $u
| "null"   | same | $u
| " x"     | same | $u
| "$u"     | same | $u
| "a|b"    | same | $u
| "<any>"  | same | $u
| "~x"     | same | $u
| "\"q\""  | same | $u
| "->"     | same | $u
| <r>x</r> | same | $u
| "1\n2"   | same | $u

a: select 1, now(), gen_random_uuid()
| 1 | <any> | -> $v
a: select $v <> $u
| t
a: select n from generate_series(1, 3) as n
(unordered)
| 1
| 2
| 3
a: select n from generate_series(1, 0) as n
(no rows)
a: select 1 / 0
! 22012 division by zero
a: select 1
| 1
`
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t)
	for _, update := range []bool{true, false, true} {
		s, err := parseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := play(t, db, s, update); err != nil {
			t.Error(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != after {
			t.Errorf("got\n%s\nwant\n%s", got, after)
		}
	}
}
