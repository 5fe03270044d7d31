package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/testdata"
)

// seedError is the Error message of an expense report with an unknown cost center.
const seedError = `<?xml version="1.0"?><Error xmlns="https://schemas.microsoft.com/SQL/ServiceBroker"><Code>12</Code>` +
	`<Description>Unknown cost center "127-1000". Please check the cost center list and resubmit the report.</Description></Error>`

// output can be read while a command writes to it.
type output struct{ pgtest.Buffer }

// waitFor waits until a pattern is in the output, and returns its groups.
func (o *output) waitFor(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.Now().Add(time.Minute)
	for {
		if m := re.FindStringSubmatch(o.String()); m != nil {
			return m
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not in the output:\n%s", pattern, o)
		}
		time.Sleep(10 * time.Millisecond) // a pace, not a proof
	}
}

// running is a command that has been started.
type running struct {
	stdout, stderr output
	interrupt      context.CancelFunc
	code           chan int
}

// startCommand runs a command line until the test interrupts it, or ends.
func startCommand(t *testing.T, args ...string) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{interrupt: cancel, code: make(chan int, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.code <- run(ctx, args, &r.stdout, &r.stderr)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

// The whole demonstration, on a server of its own, as a user runs it.
func TestDemo(t *testing.T) {
	t.Parallel()
	pgtest.Empty(t) // skips where there is no server to start
	code, stdout, stderr := execute(t, "demo")
	if code != exitDone || stderr != "" {
		t.Fatalf("exit code %d, stderr %s\n%s", code, stderr, stdout)
	}
	for _, want := range []string{
		seedError,
		"sessions of the employee: 0; messages in ExpenseQueue: 1",
		`7 messages wait in the transmission queue: The destination queue "ExpenseQueue" is disabled.`,
		"lifetimes have expired; 5 messages still wait",
		"Report R-001 was handed in before.",
		"Nobody decided in time.",
		"left in the broker   0 messages in queues, 0 messages in the transmission queue, 0 conversation endpoints, 0 conversation groups",
		"It adds up",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("not in the output: %s", want)
		}
	}
	for _, drawn := range []string{
		`(?m)^R-001   │─── Report ──▶│`,
		`(?m)^R-002   │              │◀─ Error 12 ──│`,
		`(?m)^R-003   │              │              │◀ DialogTimer─│              │`,
		`(?m)^R-003   │              │              │              │── Reminder ─▶│`,
		`(?m)^R-008   │◀ Error -8489─│`,
	} {
		if !regexp.MustCompile(drawn).MatchString(stdout) {
			t.Errorf("not drawn: %s", drawn)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("colours, though this is no terminal")
	}
	checkSums(t, stdout)
	if t.Failed() {
		t.Log(stdout)
	}
}

// checkSums adds up the summary table again: rows, columns, and the number of reports in the input.
func checkSums(t *testing.T, stdout string) {
	t.Helper()
	var input struct {
		Reports []json.RawMessage
	}
	if err := json.Unmarshal(testdata.ExpenseReports, &input); err != nil {
		t.Fatal(err)
	}
	if len(input.Reports) < 50 {
		t.Errorf("only %d reports", len(input.Reports))
	}
	_, table, _ := strings.Cut(stdout, "\nreports ")
	table, totals, found := strings.Cut(table, "───\n")
	if !found {
		t.Fatal("there is no table")
	}
	numbers := regexp.MustCompile(`\s(\d+)(?:\s|$)`)
	parse := func(line string) (row []int) {
		for _, m := range numbers.FindAllStringSubmatch(strings.ReplaceAll(line, " ", "  "), -1) {
			n, _ := strconv.Atoi(m[1])
			row = append(row, n)
		}
		return row
	}
	total, _, _ := strings.Cut(totals, "\n")
	all := parse(total)
	if len(all) != 6 || all[0] != len(input.Reports) || all[0] != all[1]+all[2]+all[3]+all[4]+all[5] {
		t.Errorf("totals: %v, with %d reports", all, len(input.Reports))
	}
	sent, ended := 0, 0
	for line := range strings.Lines(table) {
		if row := parse(line); len(row) > 0 { // not the headings
			sent += row[0]
			for _, n := range row[1:] {
				ended += n
			}
		}
	}
	if sent != all[0] || ended != all[0] {
		t.Errorf("%d sent and %d ended, by kind; %d in all", sent, ended, all[0])
	}
}

// A report that ends otherwise than its input expects is a failure.
func TestDemoDoesNotAddUp(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	file := filepath.Join(t.TempDir(), "reports.json")
	wrong := bytes.Replace(testdata.ExpenseReports, []byte(`"expect": "approved"`), []byte(`"expect": "rejected"`), 1)
	if err := os.WriteFile(file, wrong, 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := execute(t, "demo", "--database-url", db.URLAs(""), "--input", file)
	if code != exitFailed || !strings.Contains(stderr, "it does not add up: report R-001 is approved") {
		t.Errorf("exit code %d, stderr %s\n%s", code, stderr, stdout)
	}
	nothingLeft(t, db)
}

// Ctrl-C ends everything and leaves nothing behind.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	r := startCommand(t, "demo", "--database-url", db.URLAs(""))
	r.stdout.waitFor(t, "R-003.*Request")
	r.interrupt()
	if code := <-r.code; code != exitFailed || r.stderr.String() != "sbactivator: interrupted\n" {
		t.Errorf("exit code %d, stderr %s", code, r.stderr.String())
	}
	if strings.Contains(r.stdout.String(), "adds up") {
		t.Error("it went on to the end")
	}
	nothingLeft(t, db)
}

// nothingLeft looks for databases and roles of demonstrations, other than those that run now.
func nothingLeft(t *testing.T, db *pgtest.DB) {
	t.Helper()
	conn := db.Superuser(t)
	deadline := time.Now().Add(time.Minute)
	for {
		left := pgtest.Strings(t, conn, `
select r.rolname::text from pg_roles as r where r.rolname like 'sbroker\_demo\_%'
union all
select d.datname::text from pg_database as d where d.datname like 'sbroker\_demo\_%'`)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left over: %s", left)
		}
		time.Sleep(50 * time.Millisecond) // another test's demonstration may be running
	}
}

func TestDemoUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"text.json":    "no JSON",
		"scene.json":   `{"reports": [{"scene": "nowhere", "expect": "approved", "report": {"number": "1"}}]}`,
		"outcome.json": `{"reports": [{"scene": "good", "expect": "lost", "report": {"number": "1"}}]}`,
		"number.json":  `{"reports": [{"scene": "good", "expect": "approved", "report": {}}]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"demo now", exitUsage, `unknown command "now"`},
		{"demo --input nowhere.json", exitConfig, "nowhere.json"},
		{"demo --input text.json", exitConfig, "invalid character"},
		{"demo --input scene.json", exitConfig, `scene "nowhere" is none of`},
		{"demo --input outcome.json", exitConfig, `expects "lost"`},
		{"demo --input number.json", exitConfig, "no number"},
		{"demo --database-url postgres://127.0.0.1:1/postgres", exitConfig, "failed to connect"},
		{"dev --database-url host=127.0.0.1", exitConfig, "server of its own"},
	} {
		code, _, stderr := execute(t, strings.Fields(test.args)...)
		if code != test.code || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, want %d; stderr %s", test.args, code, test.code, stderr)
		}
	}
}

// dev keeps what is there: a report handed in before the stop is answered after the second start.
func TestDev(t *testing.T) {
	t.Parallel()
	pgtest.Empty(t) // skips where there is no server to start
	dir, err := os.MkdirTemp("", "sbroker-dev-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the server may run as another user
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "kept")
	start := func() (*running, *pgx.Conn) {
		r := startCommand(t, "dev", "--dir", dir)
		url := r.stdout.waitFor(t, `psql '(postgres://[^']+)'`)[1]
		r.stdout.waitFor(t, "approver\n.*│") // from here on everything is drawn
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return r, conn
	}
	stop := func(r *running) {
		r.interrupt()
		if code := <-r.code; code != exitDone || r.stderr.String() != "" {
			t.Errorf("exit code %d, stderr %s", code, r.stderr.String())
		}
	}
	exec := func(conn *pgx.Conn, sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}

	r, conn := start()
	printed := r.stdout.waitFor(t, `(?s)(select employee\.submit\(.*?\);)\n`)[1]
	exec(conn, printed)
	r.stdout.waitFor(t, `X-1 .*◀─ Approved ──│ .* 42\.50 EUR`)
	exec(conn, `select sb.alter_queue('ExpenseQueue', enabled => false)`)
	exec(conn, strings.ReplaceAll(printed, "X-1", "X-2"))
	r.stdout.waitFor(t, `X-2 .*─ Report ─`)
	stop(r)

	r, conn = start()
	exec(conn, `select sb.alter_queue('ExpenseQueue', enabled => true)`)
	r.stdout.waitFor(t, `X-2 .*◀─ Approved ──│ .* 42\.50 EUR`)
	r.stdout.waitFor(t, `X-2   +│◀─ EndDialog ─│`)
	got := pgtest.Strings(t, conn, `select s.number || ' ' || s.outcome from employee.submission as s order by s.number`)
	if want := []string{"X-1 approved", "X-2 approved"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	stop(r)
}
