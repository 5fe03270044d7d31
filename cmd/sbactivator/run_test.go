package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// TestMainProcess is not a test: it is what the tests below start as a process of its own.
func TestMainProcess(*testing.T) {
	if args, ok := os.LookupEnv("TEST_MAIN_PROCESS"); ok {
		os.Args = append([]string{"sbactivator"}, strings.Split(args, "\n")...)
		main()
	}
}

// process is sbactivator, running.
type process struct {
	cmd *exec.Cmd
	log *pgtest.Buffer
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	return startProcessIn(t, os.Environ(), args...)
}

// startProcessIn starts it in that environment.
func startProcessIn(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^TestMainProcess$"), log: &pgtest.Buffer{}}
	p.cmd.Env = append(env, "TEST_MAIN_PROCESS="+strings.Join(args, "\n"), "SBACTIVATOR_HTTP_LISTEN=127.0.0.1:0")
	p.cmd.Dir = t.TempDir()
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%v: %v\n%s", s, err, p.log)
	}
}

// workshop is a database whose queue "server" has an activation procedure that takes its time for each message.
type workshop struct {
	db   *pgtest.DB
	pool *pgxpool.Pool
	url  string // of an activator
}

func newWorkshop(t *testing.T, seconds float64) workshop {
	t.Helper()
	db := pgtest.New(t)
	w := workshop{db: db, pool: db.Pool(t)}
	role := db.CreateRole(t, "activator")
	w.url = db.URLAs(role)
	super := db.Superuser(t)
	for _, sql := range []string{
		fmt.Sprintf("grant %s to %s", db.Owner, role),
		"create table public.done (body text)",
		fmt.Sprintf("grant select, insert on public.done to %s", db.Owner),
		"create schema app",
		fmt.Sprintf(`
create function app.work() returns void language plpgsql as $$
declare
  m record;
begin
  select r.* into m from sb.receive('server', max_messages => 1) as r;
  if found then
    perform pg_sleep(%g);
    insert into public.done values (sb.body_text(m.message_body));
    perform sb.end_conversation(m.conversation_handle);
  end if;
end $$`, seconds),
		fmt.Sprintf("grant usage on schema app to %s", db.Owner),
	} {
		if _, err := super.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"select sb.grant_admin('" + role + "')",
		"select sb.create_queue('client'), sb.create_service('client', 'client')",
		"select sb.create_queue('server', activation_procedure => 'app.work', max_queue_readers => 2)",
		"select sb.create_service('server', 'server', '{DEFAULT}')",
	} {
		w.exec(t, sql)
	}
	return w
}

func (w workshop) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := w.pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (w workshop) send(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		w.exec(t, "select sb.send(sb.begin_dialog('client', 'server'), 'DEFAULT', $1::text)", fmt.Sprint(i))
	}
}

func (w workshop) count(t *testing.T, sql string) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

const (
	countDone    = "select count(*) from public.done"
	countWaiting = "select count(*) from sb.queue_messages where queue_name = 'server'"
	countTasks   = "select count(*) from sb.dm_broker_activated_tasks where queue_name = 'server'"
	countAlive   = "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'sbactivator %'"
)

// SIGTERM lets what runs finish, starts nothing more, and ends with exit code 0.
func TestRunSIGTERM(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 1)
	w.send(t, 5)
	p := startProcess(t, "run", "--database-url", w.url)
	pgtest.Eventually(t, 20*time.Second, func() bool { return w.count(t, countTasks) == 2 })
	began := time.Now()
	p.signal(t, syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, p.log)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	if done, waiting := w.count(t, countDone), w.count(t, countWaiting); done < 1 || done > 3 || done+waiting != 5 {
		t.Errorf("%d done, %d waiting", done, waiting)
	}
	if text := p.log.String(); !strings.Contains(text, "activator started") || !strings.Contains(text, "activator stopped") {
		t.Errorf("log:\n%s", text)
	}
	pgtest.Eventually(t, 10*time.Second, func() bool { return w.count(t, countAlive) == 0 })
}

// At whatever moment the signal comes, the process ends well and nothing is half done (B-71).
func TestRunSIGTERMAnyTime(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 0.02)
	w.send(t, 150)
	for range 8 {
		p := startProcess(t, "run", "--database-url", w.url, "--log-format", "json")
		time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
		p.signal(t, syscall.SIGTERM)
		err := p.cmd.Wait()
		// Before main has taken over the signal, it kills.
		status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if tooEarly := ok && status.Signal() == syscall.SIGTERM && p.log.String() == ""; err != nil && !tooEarly {
			t.Errorf("%v\n%s", err, p.log)
		}
		if done, waiting := w.count(t, countDone), w.count(t, countWaiting); done+waiting != 150 {
			t.Errorf("%d done, %d waiting", done, waiting)
		}
	}
	pgtest.Eventually(t, 10*time.Second, func() bool { return w.count(t, countAlive) == 0 })
}

// The second signal does not wait.
func TestRunSecondSignal(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 20)
	w.send(t, 1)
	p := startProcess(t, "run", "--database-url", w.url)
	pgtest.Eventually(t, 20*time.Second, func() bool { return w.count(t, countTasks) == 1 })
	p.signal(t, syscall.SIGTERM)
	time.Sleep(300 * time.Millisecond)
	p.signal(t, syscall.SIGTERM)
	began := time.Now()
	_ = p.cmd.Wait()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	if done, waiting := w.count(t, countDone), w.count(t, countWaiting); done != 0 || waiting != 1 {
		t.Errorf("%d done, %d waiting", done, waiting)
	}
}

// What makes run impossible is exit code 3 and one line.
func TestRunCannotStart(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	stranger, reader := db.CreateRole(t, "stranger"), db.CreateRole(t, "reader")
	execAll(t, db.Conn(t), "select sb.create_queue('Q'), sb.grant_receive('Q', '"+reader+"')")
	old := pgtest.New(t)
	old.Session(t, "owner").Exec("delete from sb_internal.meta where version > 2")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := dir + "/" + name
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	silent := file("c.yaml", "http: { listen: '' }")
	unreachable := "postgres://nobody:hunter2@127.0.0.1:1/none"
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unreachable": {
			[]string{"--config", file("a.yaml", "http: { listen: '' }\ndatabase: { startup_timeout: 0s, url: \""+unreachable+"\" }")},
			"failed to connect",
		},
		"no rights": {[]string{"--config", silent, "--database-url", db.URLAs(stranger)}, "select sb.grant_admin('" + stranger + "')"},
		"not admin": {[]string{"--config", silent, "--database-url", db.URLAs(reader)}, "select sb.grant_admin('" + reader + "')"},
		"no sb":     {[]string{"--config", silent, "--database-url", pgtest.Empty(t).URL()}, "run sbactivator migrate up"},
		"old sb":    {[]string{"--config", silent, "--database-url", old.URL()}, "run sbactivator migrate up"},
		"unknown key": {
			[]string{"--config", file("b.yaml", "handlers: [{ queu: q }]"), "--database-url", db.URL()},
			`unknown key "handlers[0].queu", the nearest is "queue"`,
		},
		"no such program": {
			[]string{
				"--config", file("d.yaml", "handlers: [{ queue: q, type: exec, command: [./not-there] }]"),
				"--database-url", db.URL(),
			},
			"handlers[0].command:",
		},
	} {
		code, stdout, stderr := execute(t, append([]string{"run", "--log-level", "error"}, test.args...)...)
		if code != exitConfig || stdout != "" || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, test.want) || strings.Contains(stderr, "hunter2") {
			t.Errorf("%s: exit code %d, %q", name, code, stderr)
		}
	}
}
