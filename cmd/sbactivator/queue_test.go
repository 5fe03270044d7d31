package main

import (
	"strings"
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

func TestQueueList(t *testing.T) {
	t.Parallel()
	db, conn := newOffice(t)
	execAll(t, conn, `
create schema app;
create function app.work() returns void language sql as '';
select sb.alter_queue('S', activation_procedure => 'app.work', max_queue_readers => 3, activation_enabled => false, retention => true),
       sb.alter_queue('Q', poison_message_handling => false)`)
	list := executeJSON[queueList](t, exitDone, "queue", "list", "--database-url", db.URL())
	if len(list.Queues) != 5 {
		t.Errorf("%+v", list)
	}
	for _, q := range list.Queues {
		if q.Name == "S" && (*q.MaxReaders != 3 || *q.ActivationProcedure != "app.work" || *q.ExecuteAs != db.Owner || q.IsActivationEnabled ||
			!q.IsRetentionEnabled || !q.IsPoisonHandlingEnabled || len(q.Services) != 1 || q.Services[0] != "server") {
			t.Errorf("%+v", q)
		}
	}
	_, stdout, _ := execute(t, "queue", "list", "--database-url", db.URL())
	for _, want := range []string{"app.work as " + db.Owner + " (off)  retention\n", "no poison handling\n", `李小龍\n\x1b[31m`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

func TestQueueStartStop(t *testing.T) {
	t.Parallel()
	db, conn := newOffice(t)
	reader := db.CreateRole(t, "reader")
	execAll(t, conn, "select sb.grant_receive('S', '"+reader+"')")
	for _, test := range []struct {
		command, name, url string
		code               int
		want               string
	}{
		{"start", "Off", db.URL(), exitDone, "Queue \"Off\" is started. Delivered from the transmission queue: 2 messages.\n"},
		{"start", "Off", db.URL(), exitDone, "Queue \"Off\" was started already.\n"},
		{"start", "Bad", db.URL(), exitDone, "Queue \"Bad\", which poison handling had stopped, is started; rollbacks are counted anew.\n"},
		{"stop", "Off", db.URL(), exitDone, "Queue \"Off\" is stopped, with 2 messages in it. What is sent to it now waits in the transmission queue.\n"},
		{"stop", "Off", db.URL(), exitDone, "Queue \"Off\" was stopped already.\n"},
		{"stop", oddName, db.URL(), exitDone, `Queue "a \"b\" 'c' \\ 李小龍\n\x1b[31m" is stopped`},
		{"stop", "s", db.URL(), exitFailed, `there is no queue "s", or this role may not see it`},
		{"stop", "Off", db.URLAs(reader), exitFailed, `there is no queue "Off", or this role may not see it`},
		{"stop", "S", db.URLAs(reader), exitFailed, "permission denied for function alter_queue"},
	} {
		code, stdout, stderr := execute(t, "queue", test.command, test.name, "--database-url", test.url)
		if code != test.code || !strings.Contains(stdout+stderr, test.want) || strings.Count(stdout+stderr, "\n") != 1 {
			t.Errorf("%s %q: exit code %d, %s%swant %s", test.command, test.name, code, stdout, stderr, test.want)
		}
	}
	got := pgtest.Strings(t, conn, `select q.name from sb.service_queues as q where not q.is_receive_enabled order by q.name = 'Off'`)
	if len(got) != 2 || got[0] != oddName || got[1] != "Off" {
		t.Errorf("stopped: %q", got)
	}
}

func TestQueuePeek(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn := db.Conn(t)
	execAll(t, conn, twoServices+`
do $$
declare
  h uuid := sb.begin_dialog('client', 'server');
begin
  perform sb.send(h, 'DEFAULT', 'taken'), sb.send(h, 'DEFAULT', E'two\nlines \x1b[31m'), sb.send(h, 'DEFAULT', '\xff00'::bytea),
    sb.send(h, 'DEFAULT'), sb.send(h, 'DEFAULT', '{"n": "李小龍"}'::jsonb), sb.send(h, 'DEFAULT', repeat('é', 300));
end $$;`+dialog)
	taker := db.Session(t, "taker")
	taker.Begin()
	taker.Exec("select from sb.receive('S', max_messages => 1)") // what somebody holds is no obstacle

	list := executeJSON[messageList](t, exitDone, "queue", "peek", "S", "--bytes", "101", "--database-url", db.URL())
	if len(list.Messages) != 7 {
		t.Fatalf("%+v", list)
	}
	text := func(i int) string {
		if list.Messages[i].BodyText == nil {
			return "-"
		}
		return *list.Messages[i].BodyText
	}
	if m := list.Messages[2]; m.BodyBase64 == nil || *m.BodyBase64 != "/wA=" || m.BodyText != nil {
		t.Errorf("%+v", m)
	}
	if m := list.Messages[3]; m.BodyBytes != nil || m.BodyText != nil || m.BodyBase64 != nil {
		t.Errorf("%+v", m)
	}
	if m := list.Messages[5]; !m.BodyIsCut || *m.BodyBytes != 600 || text(5) != strings.Repeat("é", 50) {
		t.Errorf("%+v: %q", m, text(5))
	}
	if text(4) != `{"n": "李小龍"}` || list.Messages[6].MessageSequenceNumber != 0 {
		t.Errorf("%q, %+v", text(4), list.Messages[6])
	}

	one := []string{"queue", "peek", "S", "--limit", "3", "--conversation", list.Messages[0].ConversationHandle, "--database-url", db.URL()}
	code, stdout, stderr := execute(t, one...)
	if code != exitDone || stderr != "" || strings.Count(stdout, " DEFAULT\n") != 3 ||
		!strings.Contains(stdout, `two\nlines \x1b[31m`) && !strings.Contains(stdout, `\xff00`) {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, _ := execute(t, "queue", "peek", "Q", "--database-url", db.URL()); code != exitDone || stdout != "No messages.\n" {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	if code, _, stderr := execute(t, "queue", "peek", "nothing", "--database-url", db.URL()); code != exitFailed || !strings.Contains(stderr, "there is no queue") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	taker.Rollback()
	if got := pgtest.Strings(t, conn, "select count(*) from sb.receive('S', max_messages => 100)"); got[0] != "6" {
		t.Errorf("%s messages are left to receive", got[0])
	}
}

func TestTextOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		body  string
		isCut bool
		want  string
		isIt  bool
	}{
		{"", false, "", true},
		{"a\tb\r\n", false, "a\tb\r\n", true},
		{"a\x00", false, "", false},
		{"\xc3", false, "", false},
		{"é\xc3", true, "é", true},
		{"李\xe6\x9d", true, "李", true},
		{"\xf0\x9f\x98", true, "", true},
		{"\xff\xff\xff\xff", true, "", false},
	} {
		got, ok := textOf([]byte(test.body), test.isCut)
		if ok != test.isIt || ok && got != test.want {
			t.Errorf("%q: %q, %t", test.body, got, ok)
		}
	}
}
