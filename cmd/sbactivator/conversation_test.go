package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
)

// newTalk has one conversation in which something is in every place that a message can be.
func newTalk(t *testing.T) (db *pgtest.DB, conn *pgx.Conn, initiator, target string) {
	db = pgtest.New(t)
	conn = db.Conn(t)
	execAll(t, conn, `
select sb.create_message_type(E'//李\n"type"'), sb.create_contract('//talk', sent_by_any => E'{DEFAULT,"//李\n\\"type\\""}');
select sb.create_queue('Q'), sb.create_service(E'//client\n''', 'Q');
select sb.create_queue('S'), sb.create_service('//server', 'S', '{//talk}');
do $$
declare
  h uuid := sb.begin_dialog(E'//client\n''', '//server', '//talk', lifetime => '1 day');
begin
  perform sb.send(h, 'DEFAULT', 'first'), sb.send(h, 'DEFAULT', 'second'), sb.send(h, E'//李\n"type"', '{}'), sb.send(h, 'DEFAULT');
  perform sb.begin_conversation_timer(h, '1 hour');
end $$;
do $$
declare
  h uuid := r.conversation_handle from sb.receive('S', max_messages => 2) as r limit 1;
begin
  perform sb.send(h, 'DEFAULT', 'answer'), sb.begin_conversation_timer(h, '1 microsecond');
end $$;
select sb.alter_queue('S', enabled => false);
select sb.send(e.conversation_handle, 'DEFAULT', 'late') from sb.conversation_endpoints as e where e.is_initiator`)
	handles := pgtest.Strings(t, conn, "select e.conversation_handle from sb.conversation_endpoints as e order by e.is_initiator desc")
	return db, conn, handles[0], handles[1]
}

// settled replaces what differs from run to run.
func settled(text, initiator, target string) string {
	text = strings.NewReplacer(initiator, "<initiator>", target, "<target>").Replace(text)
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "<uuid>")
	text = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`).ReplaceAllString(text, "<time>")
	return regexp.MustCompile(`\b(\d+\.\d+s|\d+s|\d+m\d\ds)`).ReplaceAllString(text, "<span>")
}

func TestConversationShow(t *testing.T) {
	t.Parallel()
	db, conn, initiator, target := newTalk(t)
	want := `Conversation <initiator>
  on contract //talk, lifetime until <time>

initiator //client\n'
  CONVERSING
  queue Q, priority 5
  handle <initiator>
  group <initiator>
  timer due in <span>
  transmission queue: The destination queue "S" is disabled.
target //server
  CONVERSING
  queue S (off), priority 5
  handle <target>
  group <target>
  timer due for <span>

  initiator                                   target
  │                                           │
  │────────────────── 0 to 1 ────────────────▶│  received
  │────────────── 2 //李\n"type" ────────────▶│  ready for <span>, 2 bytes
  │──────────────── 3 DEFAULT ───────────────▶│  ready for <span>
  │◀─────────────── 0 DEFAULT ────────────────│  ready for <span>, 6 bytes
  │                                           │  DialogTimer is due at the target
  │──────────────── 4 DEFAULT ───────────────╳│  not delivered for <span>, 4 bytes
  │                                           │
`
	for _, handle := range []string{initiator, target} {
		code, stdout, stderr := execute(t, "conversation", "show", handle, "--database-url", db.URL())
		if code != exitDone || stderr != "" {
			t.Errorf("exit code %d, %s", code, stderr)
		}
		if diff := cmp.Diff(want, settled(stdout, initiator, target)); diff != "" {
			t.Error(diff)
		}
	}

	c := executeJSON[conversation](t, exitDone, "conversation", "show", strings.ToUpper(target), "--database-url", db.URL())
	if c.Initiator == nil || c.Target == nil || c.Initiator.ConversationHandle != initiator || c.Target.SendSequence != 1 || len(c.Messages) != 5 {
		t.Errorf("%+v", c)
	}

	// A role that may look into one of the queues; a side that has ended with an error; one that has not begun.
	reader := db.CreateRole(t, "reader")
	execAll(t, conn, `
select sb.alter_queue('S', enabled => true), sb.grant_receive('S', '`+reader+`');
select sb.end_conversation('`+initiator+`', 7, E'no\nmore')`)
	_, stdout, _ := execute(t, "conversation", "show", target, "--database-url", db.URLAs(reader))
	for _, line := range []string{
		"initiator //client\\n'\n  its side has ended, or this role may not see it\n", "\n  ERROR\n", `── Error 7 no\nmore ─`,
	} {
		if !strings.Contains(stdout, line) {
			t.Errorf("%q is missing in\n%s", line, stdout)
		}
	}
	fresh := pgtest.Strings(t, conn, `select sb.begin_dialog(E'//client\n''', '//server', '//talk')`)[0]
	if _, stdout, _ := execute(t, "conversation", "show", fresh, "--database-url", db.URL()); !strings.Contains(stdout, "target //server\n  comes to be when the first message arrives\n") {
		t.Error(stdout)
	}
	for _, url := range []string{db.URL(), db.URLAs(reader)} {
		handle := initiator
		if code, _, stderr := execute(t, "conversation", "show", handle, "--database-url", url); code != exitFailed || !strings.Contains(stderr, "there is no conversation endpoint "+handle) {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	}
}

// A narrow terminal gets a narrow drawing.
func TestConversationNarrow(t *testing.T) {
	t.Parallel()
	_, conn, initiator, _ := newTalk(t)
	handle, err := sbroker.ParseHandle(initiator)
	if err != nil {
		t.Fatal(err)
	}
	c, err := readConversation(t.Context(), conn, handle)
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{80, 60, 10} {
		p := &page{width: width}
		c.print(p)
		for line := range strings.Lines(p.String()) {
			if got := len([]rune(strings.TrimSuffix(line, "\n"))); width >= 60 && got > width {
				t.Errorf("%d columns: %q has %d", width, line, got)
			}
		}
	}
}

func TestConversationList(t *testing.T) {
	t.Parallel()
	db, conn, initiator, target := newTalk(t)
	execAll(t, conn, `
select sb.create_queue('Other'), sb.create_service('other', 'Other', '{DEFAULT}');
select sb.begin_dialog('other', 'nowhere')`)
	list := func(args ...string) (handles []string) {
		t.Helper()
		args = append([]string{"conversation", "list", "--database-url", db.URL()}, args...)
		for _, e := range executeJSON[conversationList](t, exitDone, args...).Endpoints {
			switch e.ConversationHandle {
			case initiator:
				handles = append(handles, "initiator")
				if !e.IsWaitingToLeave || e.ReadyMessages != 1 || e.Service != "//client\n'" || e.DialogTimer == nil || e.SendSequence != 5 {
					t.Errorf("%+v", e)
				}
			case target:
				handles = append(handles, "target")
				if e.IsWaitingToLeave || e.ReadyMessages != 3 || e.IsInitiator || e.OldestSeconds == nil {
					t.Errorf("%+v", e)
				}
			default:
				handles = append(handles, "other")
			}
		}
		return handles
	}
	for args, want := range map[string][]string{
		"":                               {"initiator", "target", "other"},
		"--queue=S":                      {"target"},
		"--service=//client\n'":          {"initiator"},
		"--state=so":                     {"other"},
		"--state=STARTED_OUTBOUND":       {"other"},
		"--state=DI":                     nil,
		"--older-than=1us":               {"initiator", "target"},
		"--older-than=1us --queue=Q":     {"initiator"},
		"--older-than=1us --queue=Other": nil,
		"--older-than=1h":                nil,
	} {
		var split []string
		for _, arg := range strings.Split(args, " ") {
			if arg != "" {
				split = append(split, arg)
			}
		}
		got := list(split...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", args, diff)
		}
	}
	if got := list("--limit", "2"); len(got) != 2 {
		t.Errorf("%q", got)
	}
	code, stdout, _ := execute(t, "conversation", "list", "--limit", "3", "--database-url", db.URL())
	for _, part := range []string{initiator, "  ▶ //server ", `//client\n'`, "1+", "◀", "There may be more than these 3"} {
		if code != exitDone || !strings.Contains(stdout, part) {
			t.Errorf("exit code %d, %q is missing in\n%s", code, part, stdout)
		}
	}
	if code, _, stderr := execute(t, "conversation", "list", "--queue", "Q", "--service", "//server", "--database-url", db.URL()); code != exitFailed || !strings.Contains(stderr, `there is no service "//server" of queue "Q"`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if _, stdout, _ := execute(t, "conversation", "list", "--state", "ER", "--database-url", db.URL()); stdout != "No conversations.\n" {
		t.Error(stdout)
	}
}

func TestConversationEnd(t *testing.T) {
	t.Parallel()
	db, conn, initiator, target := newTalk(t)
	end := func(wantCode int, want string, args ...string) {
		t.Helper()
		args = append([]string{"conversation", "end", "--database-url", db.URL()}, args...)
		code, stdout, stderr := execute(t, args...)
		if code != wantCode || !strings.Contains(stdout+stderr, want) || strings.Count(stdout+stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, %s%swant %s", args, code, stdout, stderr, want)
		}
	}
	states := func() string {
		return strings.Join(pgtest.Strings(t, conn, "select e.state from sb.conversation_endpoints as e order by e.is_initiator desc"), " ")
	}
	end(exitUsage, "there is no terminal to ask at", initiator)
	if got := states(); got != "CO CO" {
		t.Errorf("states %s", got)
	}
	end(exitDone, `its last message still has to leave: The destination queue "S" is disabled.`, initiator, "--yes")
	end(exitFailed, "cannot be ended", initiator, "--yes")
	if got := states(); got != "DO CO" {
		t.Errorf("states %s", got)
	}
	execAll(t, conn, "select sb.alter_queue('S', enabled => true)")
	end(exitFailed, "there is no conversation endpoint", initiator, "--yes")
	if got := states(); got != "DI" {
		t.Errorf("states %s", got)
	}
	end(exitDone, "This side of the conversation is removed.", target, "--yes", "--cleanup")
	if got := states(); got != "" {
		t.Errorf("states %s", got)
	}

	h := pgtest.Strings(t, conn, `select sb.begin_dialog(E'//client\n''', '//server', '//talk')`)[0]
	execAll(t, conn, "select sb.send('"+h+"', 'DEFAULT', 'x')")
	end(exitDone, "The conversation has ended on this side.", h, "--yes", "--error", "42", "--description", "it's over")
	got := pgtest.Strings(t, conn, "select sb.error_code(m.message_body), sb.error_description(m.message_body) from sb.queue_messages as m where m.message_type_id = 1")
	if diff := cmp.Diff([]string{"42|it's over"}, got); diff != "" {
		t.Error(diff)
	}
}

// While somebody works on the conversation, ending it waits, and gives up when asked to.
func TestConversationEndInterrupted(t *testing.T) {
	t.Parallel()
	db, _, initiator, _ := newTalk(t)
	holder := db.Session(t, "holder")
	holder.Begin()
	holder.Exec("select sb.move_conversation($1::uuid, conversation_group_id) from sb.conversation_endpoints where conversation_handle = $1::uuid", initiator)
	r := startCommand(t, "conversation", "end", initiator, "--yes", "--database-url", db.URL())
	admin := db.Superuser(t)
	pgtest.Eventually(t, 10*time.Second, func() bool {
		got := pgtest.Strings(t, admin, `
select count(*) from pg_stat_activity as a
 where a.application_name = 'sbactivator-look' and a.datname = current_database() and $1::integer = any (pg_blocking_pids(a.pid))`, holder.PID())
		return got[0] == "1"
	})
	r.interrupt()
	if code := <-r.code; code != exitFailed || strings.Count(r.stderr.String(), "\n") != 1 {
		t.Errorf("exit code %d, %s", code, r.stderr.String())
	}
	holder.Rollback()
	if got := holder.Value("select count(*) from sb.conversation_endpoints"); got != "2" {
		t.Errorf("%s endpoints", got)
	}
}
