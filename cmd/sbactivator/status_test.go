package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/internal/screen"
)

// oddName has what could break a table, a terminal or SQL.
const oddName = "a \"b\" 'c' \\ 李小龍\n\x1b[31m"

func (r *statusReport) queue(t *testing.T, name string) queueStatus {
	t.Helper()
	for _, q := range r.Queues {
		if q.Name == name {
			return q
		}
	}
	t.Fatalf("no queue %q in %+v", name, r.Queues)
	return queueStatus{}
}

// newOffice has a queue in each state, and something of everything that status shows.
func newOffice(t *testing.T) (*pgtest.DB, *pgx.Conn) {
	db := pgtest.New(t)
	conn := db.Conn(t)
	execAll(t, conn, twoServices+dialog+dialog+`
select sb.create_queue('Off'), sb.create_service('off', 'Off', '{DEFAULT}');
select sb.alter_queue('Off', enabled => false);
select sb.create_queue('Bad'), sb.create_service('bad', 'Bad', '{DEFAULT}');
do $$
begin
  perform sb.send(sb.begin_dialog('client', 'bad'), 'DEFAULT', 'poison');
  perform sb.send(sb.begin_dialog('client', 'off'), 'DEFAULT', 'waits'), sb.send(sb.begin_dialog('client', 'off'), 'DEFAULT', 'waits too');
  perform sb.send(sb.begin_dialog('client', 'nowhere'), 'DEFAULT', 'lost');
  perform sb.begin_conversation_timer(sb.begin_dialog('client', 'server'), '1 hour');
  perform sb.begin_conversation_timer(sb.begin_dialog('client', 'server'), '1 microsecond');
end $$`)
	if _, err := conn.Exec(t.Context(), "select sb.create_queue($1::text)", oddName); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		execAll(t, conn, "begin; select from sb.receive('Bad'); rollback")
	}
	return db, conn
}

func TestStatus(t *testing.T) {
	t.Parallel()
	db, _ := newOffice(t)
	holder := db.Session(t, "holder")
	holder.Begin()
	holder.Exec("select from sb.receive('S', max_messages => 1)")
	r := executeJSON[statusReport](t, exitDone, "status", "--database-url", db.URL())
	if r.Format != 1 || !r.Database.IsAdmin || r.Database.Name != db.Name || r.Database.Role != db.Owner || !r.Database.IsBrokerEnabled {
		t.Errorf("%+v", r.Database)
	}
	for name, want := range map[string]queueStatus{
		"S":     {State: "on", ReadyMessages: 2},
		"Off":   {State: "off", UndeliveredMessages: 2},
		"Bad":   {State: "poison", ReadyMessages: 1, ConsecutiveRollbacks: 5},
		oddName: {State: "on"},
	} {
		got := r.queue(t, name)
		if got.State != want.State || got.ReadyMessages != want.ReadyMessages || got.UndeliveredMessages != want.UndeliveredMessages ||
			got.ConsecutiveRollbacks != want.ConsecutiveRollbacks || (got.OldestReadySeconds != nil) != (want.ReadyMessages > 0) {
			t.Errorf("%q: %+v", name, got)
		}
	}
	if r.Transactions.HoldingGroups != 1 || r.Transactions.OldestSeconds == nil {
		t.Errorf("%+v", r.Transactions)
	}
	if r.Transmission.Messages != 3 || len(r.Transmission.Reasons) != 2 || r.Transmission.Reasons[0].Reason != `The destination queue "Off" is disabled.` {
		t.Errorf("%+v", r.Transmission)
	}
	if r.Endpoints.Endpoints != 11 || r.Endpoints.Timers != 2 || r.Endpoints.TimersDue != 1 {
		t.Errorf("%+v", r.Endpoints)
	}

	code, stdout, stderr := execute(t, "status", "--database-url", db.URL())
	if code != exitDone || stderr != "" || strings.Contains(stdout, "\x1b") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	for _, want := range []string{
		`a "b" 'c' \ 李小龍\n\x1b[31m  on `, "\nBad ", " poison ", "  5/5\n", "Transactions   1 holds conversation groups, the oldest for ",
		"Transmission   3 messages\n", `    The destination queue "Off" is disabled.`, "9 CONVERSING, 2 STARTED_OUTBOUND", "2 set, 1 due",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}

	// A terminal of 80 columns, or of 20.
	for _, width := range []int{80, 20} {
		p := &page{width: width, color: true}
		r.print(p)
		for line := range strings.Lines(p.String()) {
			line = strings.NewReplacer("\n", "", "\x1b[0m", "").Replace(line)
			for _, color := range []string{"1", "2", "31", "32", "33", "36"} {
				line = strings.ReplaceAll(line, "\x1b["+color+"m", "")
			}
			if strings.Contains(line, "\x1b") || width == 80 && screen.Width(line) > width {
				t.Errorf("%d columns: %q is %d wide", width, line, screen.Width(line))
			}
		}
	}
}

// However much waits, the numbers are estimates, not counts.
func TestStatusOfMuch(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	execAll(t, db.Conn(t), twoServices+`
do $$
declare
  h uuid := sb.begin_dialog('client', 'server');
begin
  perform sb.send_batch(h, 'DEFAULT', array_fill('x'::bytea, array[20000]));
end $$;
do $$
begin
  perform sb.send_batch(sb.begin_dialog('client', 'nowhere'), 'DEFAULT', array_fill('x'::bytea, array[600]));
end $$;
analyze sb_internal.message`)
	r := executeJSON[statusReport](t, exitDone, "status", "--database-url", db.URL())
	if q := r.queue(t, "S"); !q.IsEstimate || q.ReadyMessages < 10000 {
		t.Errorf("%+v", q)
	}
	if !r.Transmission.IsLowerBound || r.Transmission.Messages != transmissionSample || r.Transmission.Estimate == nil {
		t.Errorf("%+v", r.Transmission)
	}
	if _, stdout, _ := execute(t, "status", "--database-url", db.URL()); !strings.Contains(stdout, " ~") || !strings.Contains(stdout, "500 messages") {
		t.Error(stdout)
	}
}

func TestStatusReaders(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 2)
	w.send(t, 6)
	startProcess(t, "run", "--database-url", w.url)
	var r statusReport
	pgtest.Eventually(t, 20*time.Second, func() bool {
		r = executeJSON[statusReport](t, exitDone, "status", "--database-url", w.db.URL())
		return r.queue(t, "server").Readers == 2
	})
	if q := r.queue(t, "server"); q.MaxReaders == nil || *q.MaxReaders != 2 || !q.IsActivationEnabled {
		t.Errorf("%+v", q)
	}
	if len(r.Activators) != 1 || r.Activators[0].Readers != 2 || r.Activators[0].Sessions < 2 || r.Activators[0].Role != w.db.Name+"_activator" {
		t.Errorf("%+v", r.Activators)
	}
}

// What a role may see is what it is shown, and it is told.
func TestStatusRights(t *testing.T) {
	t.Parallel()
	db, conn := newOffice(t)
	reader, stranger := db.CreateRole(t, "reader"), db.CreateRole(t, "stranger")
	execAll(t, conn, "select sb.grant_receive('Off', '"+reader+"')")
	r := executeJSON[statusReport](t, exitDone, "status", "--database-url", db.URLAs(reader))
	if r.Database.IsAdmin || len(r.Queues) != 1 || r.Queues[0].Name != "Off" || r.Endpoints.Endpoints != 0 {
		t.Errorf("%+v", r)
	}
	if _, stdout, _ := execute(t, "status", "--database-url", db.URLAs(reader)); !strings.Contains(stdout, "\nOnly what this role may see: it is no admin of sb.\n") {
		t.Error(stdout)
	}
	for name, test := range map[string]struct{ url, want string }{
		"no rights":   {db.URLAs(stranger), "has no rights in sb"},
		"no sb":       {pgtest.Empty(t).URL(), "run sbactivator migrate up"},
		"unreachable": {"postgres://nobody:hunter2@127.0.0.1:1/none", "failed to connect"},
	} {
		for _, command := range []string{"status", "status --watch", "queue list", "queue stop x", "conversation list", "doctor"} {
			args := append(strings.Fields(command), "--database-url", test.url)
			code, stdout, stderr := execute(t, args...)
			if code != exitConfig || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.want) || strings.Contains(stderr, "hunter2") {
				t.Errorf("%s, %s: exit code %d, %s%s", name, command, code, stdout, stderr)
			}
		}
	}
}

// --watch goes on through the loss of its connection, until Ctrl-C.
func TestStatusWatch(t *testing.T) {
	t.Parallel()
	db, conn := newOffice(t)
	frames := func(r *running, n int, mark string) func() bool {
		return func() bool { return strings.Count(r.stdout.String(), mark) >= n }
	}
	text := startCommand(t, "status", "--watch", "--interval", "100ms", "--database-url", db.URL())
	asJSON := startCommand(t, "status", "--watch", "--interval", "100ms", "--json", "--database-url", db.URL())
	pgtest.Eventually(t, 20*time.Second, frames(text, 2, "QUEUE"))
	pgtest.Eventually(t, 20*time.Second, frames(asJSON, 2, "\n"))
	execAll(t, conn, "select pg_terminate_backend(a.pid) from pg_stat_activity as a where a.application_name = 'sbactivator-look' and a.datname = current_database()")
	seen := strings.Count(text.stdout.String(), "QUEUE")
	seenJSON := strings.Count(asJSON.stdout.String(), "\n")
	pgtest.Eventually(t, 20*time.Second, frames(text, seen+2, "QUEUE"))
	pgtest.Eventually(t, 20*time.Second, frames(asJSON, seenJSON+2, "\n"))
	for _, r := range []*running{text, asJSON} {
		r.interrupt()
		if code := <-r.code; code != exitDone {
			t.Errorf("exit code %d, %s", code, r.stderr.String())
		}
	}
	if strings.Contains(text.stdout.String(), "\x1b") {
		t.Error("control sequences, though this is no terminal")
	}
	for line := range strings.Lines(asJSON.stdout.String()) {
		var r statusReport
		if err := json.Unmarshal([]byte(line), &r); err != nil || len(r.Queues) == 0 {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// Nobody reads any more: the process ends, and says nothing about it.
func TestStatusClosedPipe(t *testing.T) {
	t.Parallel()
	db, _ := newOffice(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	log := &pgtest.Buffer{}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMainProcess$")
	cmd.Env = append(os.Environ(), "TEST_MAIN_PROCESS="+strings.Join([]string{"status", "--watch", "--interval", "100ms", "--database-url", db.URL()}, "\n"))
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = writer, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if _, err := bufio.NewReader(reader).ReadString('\n'); err != nil {
		t.Error(err)
	}
	reader.Close()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		<-done
		t.Error("it goes on without a reader")
	}
	if log.String() != "" {
		t.Error(log.String())
	}
}

// What cannot be written is an error, not a panic.
func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	db, _ := newOffice(t)
	for _, command := range []string{"status", "status --json", "status --watch", "queue list", "queue peek S", "conversation list", "doctor --list"} {
		var stderr strings.Builder
		args := append(strings.Fields(command), "--database-url", db.URL())
		if code := run(t.Context(), args, brokenWriter{}, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "broken pipe") {
			t.Errorf("%s: exit code %d, %s", command, code, stderr.String())
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) {
	return 0, fmt.Errorf("broken pipe: %w", io.ErrClosedPipe)
}

func TestLookUsage(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"status --interval 1ms":              "--interval",
		"status now":                         "unknown command",
		"queue":                              "list, start, stop, peek",
		"queue start":                        `"sbactivator queue start" needs a NAME, as sbactivator queue list shows them`,
		"queue stop Q 2":                     "1 arg",
		"queue peek Q --limit 0":             "--limit",
		"queue peek Q --bytes -1":            "--bytes",
		"queue peek Q --conversation x":      "not a conversation handle",
		"conversation":                       "list, show, end",
		"conversation list --state gone":     "none of SO, CO, DI, DO, ER",
		"conversation list --limit 0":        "--limit",
		"conversation list --older-than -1s": "--older-than",
		"conversation show":                  "needs a HANDLE, as sbactivator conversation list",
		"conversation show 1":                "not a conversation handle",
		"conversation end 1 --yes":           "not a conversation handle",
		"conversation end 41c3f048-9a3f-4908-89bb-6cd01d29fa04":                                             "pass --yes",
		"conversation end 41c3f048-9a3f-4908-89bb-6cd01d29fa04 --yes --error 5":                             "description",
		"conversation end 41c3f048-9a3f-4908-89bb-6cd01d29fa04 --yes --error -5 --description x":            "greater than 0",
		"conversation end 41c3f048-9a3f-4908-89bb-6cd01d29fa04 --yes --cleanup --error 5 --description bad": "cleanup",
		"doctor --skip nothing": "no check",
		"doctor --patience -1s": "--patience",
	} {
		code, stdout, stderr := execute(t, strings.Fields(command)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s%s", command, code, stdout, stderr)
		}
	}
}

// The JSON in docs/operations.md is what status prints: every key of it, and no other.
func TestStatusDocumented(t *testing.T) {
	t.Parallel()
	block := blocks(readFile(t, "docs/operations.md"), "json")[0]
	var (
		r           statusReport
		said, is    any
		reencoded   strings.Builder
		decodeInto  = func(text string, v any) error { return json.Unmarshal([]byte(text), v) }
		strictInput = json.NewDecoder(strings.NewReader(block))
	)
	strictInput.DisallowUnknownFields()
	if err := errors.Join(strictInput.Decode(&r), writeJSON(&reencoded, r, ""), decodeInto(block, &said), decodeInto(reencoded.String(), &is)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(said, is); diff != "" {
		t.Error(diff)
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{
		-1: "0.0s", 0.04: "0.0s", 9.94: "9.9s", 10: "10s", 61: "1m01s", 3600: "1h00m", 90000: "1d01h",
	} {
		if got := span(&seconds); got != want {
			t.Errorf("%g: %s, want %s", seconds, got, want)
		}
	}
}
