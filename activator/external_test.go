package activator_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/sbroker"
)

// The test binary is its own handlers: with this variable it is what the variable says.
const roleVariable = "ACTIVATOR_TEST_ROLE"

func playRole() {
	switch os.Getenv(roleVariable) {
	case "":
		return
	case "exec":
		playExec()
	case "program":
		playProgram()
	case "activator":
		playActivator()
	}
	os.Exit(0)
}

// self is the command to run the test binary in a role. dir is where it leaves traces.
func self(role, dir string) activator.Command {
	return activator.Command{Args: []string{os.Args[0]}, Env: map[string]string{roleVariable: role, "DIR": dir}}
}

type question struct {
	Protocol int             `json:"protocol"`
	Queue    string          `json:"queue"`
	Group    string          `json:"conversation_group_id"`
	State    json.RawMessage `json:"state"`
	Messages []struct {
		Handle   string  `json:"conversation_handle"`
		Type     string  `json:"message_type_name"`
		Number   int     `json:"message_sequence_number"`
		Service  string  `json:"service_name"`
		Contract string  `json:"service_contract_name"`
		Body     *string `json:"message_body"`
		Base64   *string `json:"message_body_base64"`
	} `json:"messages"`
}

// playExec does what the first message of each batch says, in JSON: an answer is given as it is, with H for the message's
// handle; a word is a way to misbehave, once: at the second try the answer is {}.
func playExec() {
	pid := strconv.Itoa(os.Getpid())
	dir := os.Getenv("DIR")
	_ = os.WriteFile(filepath.Join(dir, "pid "+pid), nil, 0o600)
	in := bufio.NewReader(os.Stdin)
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil {
			_ = os.WriteFile(filepath.Join(dir, "eof "+pid), nil, 0o600)
			return
		}
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			panic(err)
		}
		say := "end " + q.Messages[0].Type
		if q.Messages[0].Body != nil {
			say = *q.Messages[0].Body
		}
		answer, misbehaviour := misbehave(dir, say)
		if !misbehaviour {
			answer = strings.ReplaceAll(say, "H", q.Messages[0].Handle)
			if !strings.HasPrefix(say, "{") {
				answer = "{}"
			}
			answer = strings.ReplaceAll(strings.ReplaceAll(answer, "PID", pid), "\n", " ")
		}
		fmt.Println(answer)
		if say == "once" {
			return
		}
	}
}

func misbehave(dir, say string) (answer string, is bool) {
	marker := filepath.Join(dir, "did "+say)
	if _, err := os.Stat(marker); err == nil || strings.HasPrefix(say, "{") {
		return "", false
	}
	_ = os.WriteFile(marker, nil, 0o600)
	switch say {
	case "malformed":
		return "Hello, world!", true
	case "unknown action":
		return `{"actions":[{"explode":{}}]}`, true
	case "failing action":
		return `{"state":1,"actions":[{"end":{"conversation_handle":` + someHandle + `}}]}`, true
	case "huge":
		return strings.Repeat(" ", 2<<20) + "{}", true
	case "flood":
		line := strings.Repeat("x", 20_000) + "\n"
		for range 1000 {
			os.Stderr.WriteString(line)
		}
		fmt.Fprintln(os.Stderr, "after the flood")
		return "{}", true
	case "crash":
		fmt.Fprintln(os.Stderr, "out of cheese")
		fmt.Print(`{"sta`)
		os.Exit(3)
	case "leave":
		os.Exit(0)
	case "hang":
		// With a child, which has the pipes too and does not heed SIGTERM.
		cmd := exec.Command("/bin/sh", "-c", `trap "" TERM; echo $$ >"$DIR/child"; while :; do sleep 0.05; done`)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		_ = cmd.Run()
	case "unasked":
		fmt.Println("{}")
		return "{}", true
	case "close":
		os.Stdout.Close()
		time.Sleep(time.Minute)
	}
	return "", false
}

// traces returns what is left in the directory that begins with a word, without it.
func traces(t testing.TB, dir, word string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), word+" "); ok {
			names = append(names, name)
		}
	}
	return names
}

// gone reports whether no process has that id.
func gone(t testing.TB, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(n)
	return err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// answers receives what comes back on the client's queue.
func (s *stage) answers(n int) (bodies []string) {
	s.t.Helper()
	s.eventually(fmt.Sprint(n, " answers"), func() bool {
		messages, err := s.b.Receive(context.Background(), "client", sbroker.ReceiveOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range messages {
			bodies = append(bodies, m.Text())
		}
		return len(bodies) >= n
	})
	return bodies
}

// Every action, references, and the three kinds of state.
func TestContract(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec("select sb.create_queue('third'), sb.create_service('third', 'third', '{DEFAULT}')")
	s.start(s.config(), func(a *activator.Activator) {
		a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: self("exec", t.TempDir())}),
			activator.HandlerOptions{Batch: 1})
	})
	state := func() string {
		return value[string](s, "select coalesce((select jsonb_agg(c.state) from sb.conversation_state as c), 'null')::text")
	}
	h := s.send(`{"state":{"n":1.50},"actions":[
		{"send":{"conversation_handle":"H","message_type":"DEFAULT","message_body":"text é"}},
		{"send":{"conversation_handle":"H","message_body":{"a": [1.0, "\u00e9"]}}},
		{"send":{"conversation_handle":"H","message_body_base64":"/wA="}},
		{"send":{"conversation_handle":"H"}},
		{"send":{"conversation_handle":"H","message_body":null}},
		{"send":{"conversation_handle":"H","message_body":7}}]}`)
	want := []string{"text é", `{"a": [1.0, "é"]}`, "\xff\x00", "", "", "7"}
	if diff := cmp.Diff(want, s.answers(6)); diff != "" {
		t.Error(diff)
	}
	if got := state(); got != `[{"n": 1.50}]` {
		t.Errorf("state %s", got)
	}
	then := func(text string) {
		t.Helper()
		if err := s.b.SendText(t.Context(), h, sbroker.DefaultMessageType, text); err != nil {
			t.Fatal(err)
		}
	}
	then(`{"actions":[{"send":{"conversation_handle":"H","message_body":"unchanged"}}]}`)
	s.answers(1)
	if got := state(); got != `[{"n": 1.50}]` {
		t.Errorf("state %s, want it unchanged", got)
	}
	// Two dialogs, one in the group of the other, and a timer.
	then(`{"state":null,"actions":[
		{"begin_dialog":{"as":"w","from_service":"server","to_service":"third","on_contract":"DEFAULT","lifetime_seconds":7200}},
		{"begin_dialog":{"as":"v","from_service":"server","to_service":"third","related_conversation":"$w"}},
		{"send":{"conversation_handle":"$w","message_body":"w"}},
		{"send":{"conversation_handle":"$v","message_body":"v"}},
		{"timer":{"conversation_handle":"$w","timeout_seconds":3600.5}},
		{"send":{"conversation_handle":"H","message_body":"done"}}]}`)
	s.answers(1)
	if got := state(); got != `null` {
		t.Errorf("state %s, want none", got)
	}
	if n := value[int](s, `
select count(*) from sb.conversation_endpoints as e join sb.services as v on v.service_id = e.service_id
where v.name = 'server' and e.is_initiator and e.conversation_group_id in (
  select o.conversation_group_id from sb.conversation_endpoints as o where o.dialog_timer > now() + interval '3590 s')`); n != 2 {
		t.Errorf("%d dialogs in the group of the timer, want 2", n)
	}
	if got := value[string](s, `select string_agg(sb.body_text(m.message_body), ' ' order by m.queuing_order)
from sb.queue_messages as m where m.queue_name = 'third'`); got != "w v" {
		t.Errorf("third has got %q", got)
	}
	// Into another group, and an end with an error.
	group := value[string](s, `select e.conversation_group_id::text from sb.conversation_endpoints as e where e.dialog_timer is not null`)
	then(`{"actions":[{"move":{"conversation_handle":"H","conversation_group_id":"` + group + `"}},
		{"end":{"conversation_handle":"H","error_code":42,"error_description":"no <more>"}}]}`)
	s.eventually("the error has come", func() bool {
		messages, err := s.b.Receive(t.Context(), "client", sbroker.ReceiveOptions{Conversation: h})
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			return false
		}
		info, err := messages[0].ErrorInfo()
		if err != nil || info.Code != 42 || info.Description != "no <more>" {
			t.Errorf("%+v, %v", info, err)
		}
		return true
	})
}

// However a handler misbehaves: the batch is rolled back and tried again, what has happened is in the log, and no process
// is left.
func TestExecMisbehaving(t *testing.T) {
	t.Parallel()
	for say, want := range map[string]string{
		"malformed":      `malformed answer: not JSON: invalid character 'H' looking for beginning of value; stdout is for answers only, write messages to stderr`,
		"unknown action": `actions[0]: unknown key \"explode\"`,
		"failing action": `actions[0].end: sbroker: end_conversation: `,
		"huge":           `answer: longer than 1048576 bytes`,
		"crash":          `it has ended before it has answered: exit status 3`,
		"leave":          `it has ended before it has answered`,
		"hang":           `handler timeout of 1s`,
		"close":          `it has closed its standard output before it has answered`,
	} {
		t.Run(say, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			dir := t.TempDir()
			cfg := s.config()
			log := &captured{}
			cfg.Logger = log.logger()
			command := self("exec", dir)
			command.Logger = cfg.Logger
			a := s.start(cfg, func(a *activator.Activator) {
				a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: command}),
					activator.HandlerOptions{Timeout: map[bool]time.Duration{true: time.Second, false: time.Minute}[say == "hang"]})
			})
			s.send(say)
			s.idle("server")
			if text := log.String(); strings.Count(text, "handler failed") != 1 || !strings.Contains(text, want) {
				t.Errorf("log:\n%s\nwant %s", text, want)
			}
			if say == "crash" && !strings.Contains(log.String(), "out of cheese") {
				t.Errorf("log:\n%s", log)
			}
			if n := value[int](s, "select consecutive_rollbacks from sb.queue_statistics where queue_name = 'server'"); n != 0 {
				t.Errorf("%d rollbacks after it has worked", n)
			}
			if n := value[int](s, "select count(*) from sb.conversation_state"); n != 0 {
				t.Error("the failed answer has left a state")
			}
			pids := traces(t, dir, "pid")
			if want := map[bool]int{true: 1, false: 2}[say == "failing action"]; len(pids) != want {
				t.Errorf("%d processes, want %d", len(pids), want)
			}
			if say == "hang" {
				child, err := os.ReadFile(filepath.Join(dir, "child"))
				if err != nil {
					t.Fatal(err)
				}
				s.eventually("the child is dead", func() bool { return gone(t, string(child)) })
			}
			if err := a.stop(); err != nil {
				t.Error(err)
			}
			for _, pid := range pids {
				if !gone(t, pid) {
					t.Errorf("process %s is left", pid)
				}
			}
		})
	}
}

// A line too many is found out when the next batch is asked about at the latest.
func TestExecUnasked(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	cfg := s.config()
	log := &captured{}
	cfg.Logger = log.logger()
	command := self("exec", dir)
	command.Logger = cfg.Logger
	s.start(cfg, func(a *activator.Activator) {
		a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: command}),
			activator.HandlerOptions{Batch: 1, MaxQueueReaders: 1})
	})
	s.send("unasked", "{}", "{}")
	s.idle("server")
	if text := log.String(); !strings.Contains(text, "it has written a line before it was asked; stdout is for answers only") {
		t.Errorf("log:\n%s", text)
	}
}

// What a handler writes to stderr goes to the log, but not without bounds.
func TestExecFlood(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	log := &captured{}
	command := self("exec", t.TempDir())
	command.Logger = log.logger()
	s.start(s.config(), func(a *activator.Activator) {
		a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: command}))
	})
	s.send("flood")
	s.idle("server")
	s.eventually("lines are left out", func() bool { return strings.Contains(log.String(), "lines are left out") })
	if text := log.String(); len(text) > 4<<20 || !strings.Contains(text, "cut=true") {
		t.Errorf("%d bytes of log", len(text))
	}
}

// Processes are kept: as many as run at the same time, and not more.
func TestExecProcesses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	a := s.start(s.config(), func(a *activator.Activator) {
		a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: self("exec", dir)}),
			activator.HandlerOptions{Batch: 1, MaxQueueReaders: 2})
	})
	for range 60 {
		s.send(`{"state":"PID","actions":[{"send":{"conversation_handle":"H","message_body":"PID"}}]}`)
	}
	seen := map[string]int{}
	for _, pid := range s.answers(60) {
		seen[pid]++
	}
	if pids := traces(t, dir, "pid"); len(pids) > 2 || len(seen) > len(pids) {
		t.Errorf("processes %v, want at most 2", pids)
	}
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range traces(t, dir, "pid") {
		if !gone(t, pid) {
			t.Errorf("process %s is left", pid)
		}
	}
}

// A program that ends after each answer is started for each batch; nothing fails for it.
func TestExecOneShot(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	cfg := s.config()
	log := &captured{}
	cfg.Logger = log.logger()
	s.start(cfg, func(a *activator.Activator) {
		a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: self("exec", dir)}),
			activator.HandlerOptions{Batch: 1, MaxQueueReaders: 2})
	})
	for range 20 {
		s.send("once")
	}
	s.idle("server")
	if n := len(traces(t, dir, "pid")); n < 20 {
		t.Errorf("%d processes, want 20", n)
	}
	if text := log.String(); strings.Contains(text, "failed") {
		t.Errorf("log:\n%s", text)
	}
}

// A program that cannot be started, or always ends without an answer, is not started in a hot loop. As long as it has
// not read anything, that costs no poison tries.
func TestExecHotLoop(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"not there":        {"/does/not/exist"},
		"leaves":           {"/bin/sh", "-c", `: >"$DIR/pid $$"`},
		"talks and leaves": {"/bin/sh", "-c", `: >"$DIR/pid $$"; echo Usage:; exit 1`},
		"reads and leaves": {"/bin/sh", "-c", `: >"$DIR/pid $$"; read -r line`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			hasRead := name == "reads and leaves"
			s.exec("select sb.alter_queue('server', poison_message_handling => $1)", !hasRead)
			dir := t.TempDir()
			cfg := s.config()
			log := &captured{}
			cfg.Logger = log.logger()
			s.start(cfg, func(a *activator.Activator) {
				a.Handle("server", activator.ExecHandler(activator.ExecOptions{
					Command: activator.Command{Args: args, Env: map[string]string{"DIR": dir}},
				}))
			})
			for range 30 {
				s.send("x")
			}
			what := map[bool]string{false: "the handler cannot work now", true: "handler failed"}[hasRead]
			s.eventually("logged", func() bool { return strings.Contains(log.String(), what) })
			time.Sleep(1500 * time.Millisecond)
			if n := len(traces(t, dir, "pid")) + strings.Count(log.String(), "no such file"); n > 10 {
				t.Errorf("started %d times in 1.5 s", n)
			}
			if !value[bool](s, "select is_receive_enabled from sb.service_queues where name = 'server'") {
				t.Error("the queue has been disabled")
			}
			n := value[int](s, "select consecutive_rollbacks from sb.queue_statistics where queue_name = 'server'")
			if !hasRead && n > 1 { // one may be about to be excused
				t.Errorf("%d rollbacks count", n)
			}
		})
	}
}

// A program that ends before it has read anything is no failure of the messages, however often it does; when it works again,
// all of them are handled. One that has read is.
func TestExecUnread(t *testing.T) {
	t.Parallel()
	for _, hasRead := range []bool{false, true} {
		s := newStage(t)
		s.exec("select sb.set_option('poison_message_threshold', '2')")
		dir := t.TempDir()
		script := `n=$(ls | grep -c pid); : >"pid $$"; if [ "$n" -lt 6 ]; then exit 1; fi; while read -r line; do echo '{}'; done`
		if hasRead {
			script = `: >"pid $$"; read -r line; exit 1`
		}
		s.start(s.config(), func(a *activator.Activator) {
			a.Handle("server", activator.ExecHandler(activator.ExecOptions{
				Command: activator.Command{Args: []string{"/bin/sh", "-c", script}, Dir: dir},
			}))
		})
		for range 20 {
			s.send("x")
		}
		if !hasRead {
			s.idle("server")
		}
		s.eventually("switched as it should be", func() bool {
			return value[bool](s, "select is_receive_enabled from sb.service_queues where name = 'server'") != hasRead
		})
	}
}

// Of several transactions at the same time each can be excused, in any order.
func TestExcuseAll(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		s := newStage(t)
		var open []pgx.Tx
		for range 3 {
			s.send("x")
			tx, err := s.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "select from sb.receive('server', 1)"); err != nil {
				t.Fatal(err)
			}
			open = append(open, tx)
		}
		for _, i := range order {
			var excused bool
			err := open[i].QueryRow(t.Context(), `
select sb.excuse_reader(q.queue_id, pg_backend_pid()) from sb.service_queues as q where q.name = 'server'`).Scan(&excused)
			if err != nil || !excused {
				t.Errorf("%v, %v", excused, err)
			}
		}
		for _, tx := range open {
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := value[int](s, "select consecutive_rollbacks from sb.queue_statistics where queue_name = 'server'"); n != 0 {
			t.Errorf("%v: %d rollbacks count", order, n)
		}
	}
}

// Running batches are finished when Run is asked to end; then the programs get SIGTERM.
func TestExecShutdown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	a := s.start(s.config(), func(a *activator.Activator) {
		a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: activator.Command{
			Args: []string{"/bin/sh", "-c", `
trap 'echo >"$DIR/terminated"; exit 0' TERM
while read -r line; do echo >"$DIR/asked"; sleep 0.5; echo '{"state":1}'; done
sleep 1 & wait`},
			Env: map[string]string{"DIR": dir},
		}}), activator.HandlerOptions{Batch: 1})
	})
	s.send("x", "y")
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	s.eventually("asked", func() bool { return exists("asked") })
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	if n := value[int](s, "select count(*) from sb.queue_messages where queue_name = 'server'"); n != 1 {
		t.Errorf("%d messages left, want 1", n)
	}
	if !exists("terminated") {
		t.Error("the program was not asked to end")
	}
}

// What a stop rolls back counts for nothing, whatever the handler is: neither as a failure, nor against failures before.
func TestShutdownIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"go", "exec", "function", "procedure"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			count := func() int {
				return value[int](s, "select consecutive_rollbacks from sb.queue_statistics where queue_name = 'server'")
			}
			s.send("x")
			const failures = 2
			for range failures {
				_, err := s.pool.Exec(t.Context(), "do $$ begin perform from sb.receive('server'); raise exception 'no'; end $$")
				if err == nil {
					t.Fatal("no error")
				}
			}
			if n := count(); n != failures {
				t.Fatalf("%d rollbacks to begin with", n)
			}
			watcher := s.db.Superuser(t)
			dir := t.TempDir()
			cfg := s.config()
			cfg.ShutdownTimeout = 100 * time.Millisecond
			if kind == "function" || kind == "procedure" {
				s.activate(kind, `begin perform from sb.receive('server'); perform pg_sleep(60); end`, 1)
			}
			a := s.start(cfg, func(a *activator.Activator) {
				switch kind {
				case "go":
					a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
						_, err := b.Tx.Exec(ctx, "select pg_sleep(60)")
						return err
					})
				case "exec":
					a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: activator.Command{
						Args: []string{"/bin/sh", "-c", "read -r line; : >asked; sleep 60"}, Dir: dir,
					}}))
				}
			})
			s.eventually("received", func() bool {
				if kind == "exec" {
					_, err := os.Stat(filepath.Join(dir, "asked"))
					return err == nil
				}
				var sleeping bool // which only a superuser sees
				err := watcher.QueryRow(t.Context(), `
select exists (select from pg_stat_activity as a where a.datname = current_database() and a.wait_event = 'PgSleep')`).Scan(&sleeping)
				return err == nil && sleeping
			})
			if err := a.stop(); err != nil {
				t.Fatal(err)
			}
			if n := count(); n != failures {
				t.Errorf("%d rollbacks, want %d", n, failures)
			}
			if n := value[int](s, "select count(*) from sb.queue_messages where queue_name = 'server'"); n != 1 {
				t.Errorf("%d messages, want 1", n)
			}
		})
	}
}

// One of several activators keeps house, and another one when it has gone.
func TestOneKeepsHouse(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var all []*running
	for i := range 3 {
		cfg := s.config()
		cfg.Name = fmt.Sprint("activator ", i)
		all = append(all, s.start(cfg))
	}
	keeper := func() (name string) {
		_ = s.pool.QueryRow(context.Background(), `
select a.application_name from pg_locks as l join pg_stat_activity as a on a.pid = l.pid
where a.datname = current_database() and l.locktype = 'advisory' and l.classid = 8421 and l.granted`).Scan(&name)
		return name
	}
	s.eventually("one does", func() bool { return keeper() != "" })
	first := keeper()
	for i, a := range all {
		if leads := a.KeepsHouse(); leads != (first == fmt.Sprintf("sbactivator activator %d listener", i)) {
			t.Errorf("activator %d keeps house: %v; the lock is with %s", i, leads, first)
		}
	}
	for i, a := range all {
		if first == fmt.Sprintf("sbactivator activator %d listener", i) {
			if err := a.stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.within(30*time.Second, "another one does", func() bool { return keeper() != "" && keeper() != first })
}

// The environment does not lead to the database unless that is asked for.
func TestCommandEnvironment(t *testing.T) {
	for name, v := range map[string]string{
		"PGPASSWORD": "hunter2", "PGHOST": "h", "SBACTIVATOR_DATABASE_URL": "postgres://me:hunter2@h/d",
		"SBROKER_DATABASE_URL": "another", "OTHER": "yes",
	} {
		t.Setenv(name, v)
	}
	for _, pass := range []bool{false, true} {
		s := newStage(t)
		dir := t.TempDir()
		a := s.start(s.config(), func(a *activator.Activator) {
			a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: activator.Command{
				Args: []string{"/bin/sh", "-c", `env >environment; pwd >>environment; while read -r line; do echo '{}'; done`},
				Dir:  dir, Env: map[string]string{"MINE": "a=b c"}, PassDatabase: pass, DatabaseURL: "postgres://the/one",
			}}))
		})
		s.send("x")
		s.idle("server")
		if err := a.stop(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "environment"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for line, want := range map[string]bool{
			"OTHER=yes": true, "MINE=a=b c": true, dir: true,
			"PGPASSWORD=hunter2": pass, "PGHOST=h": pass, "SBROKER_DATABASE_URL=postgres://the/one": pass,
			"SBACTIVATOR_DATABASE_URL=postgres://me:hunter2@h/d": false, "SBROKER_DATABASE_URL=another": false,
		} {
			if slices.Contains(lines, line) != want {
				t.Errorf("pass %v: %s is there: %v", pass, line, !want)
			}
		}
	}
}

// What the peer has ended is ended by the activator, unless KeepEnded is set or the handler has done it.
func TestExternalAutoEnd(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		s := newStage(t)
		s.start(s.config(), func(a *activator.Activator) {
			a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: self("exec", t.TempDir()), KeepEnded: keep}),
				activator.HandlerOptions{Batch: 1})
		})
		ended, failed := s.send("{}"), s.send("{}")
		s.idle("server")
		for _, err := range []error{s.b.End(t.Context(), ended), s.b.EndWithError(t.Context(), failed, 1, "no")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		s.idle("server")
		n := value[int](s, "select count(*) from sb.conversation_endpoints")
		if want := map[bool]int{false: 0, true: 2}[keep]; n != want {
			t.Errorf("keep %v: %d conversations are left, want %d", keep, n, want)
		}
	}
}

// webHandler is an HTTP handler under test.
type webHandler struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	serve    func(n int, w http.ResponseWriter, r *http.Request)
}

func newWebHandler(t *testing.T, serve func(n int, w http.ResponseWriter, r *http.Request)) *webHandler {
	h := &webHandler{serve: serve}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.requests = append(h.requests, r)
		h.bodies = append(h.bodies, string(body))
		n := len(h.requests)
		h.mu.Unlock()
		h.serve(n, w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func TestHTTPHandler(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	web := newWebHandler(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "{\"state\": {\"n\": 1}}\n")
	})
	u := strings.Replace(web.URL, "http://", "http://me:hunter2@", 1) + "/handle?secret=hunter2"
	s.start(s.config(), func(a *activator.Activator) {
		a.Handle("server", activator.HTTPHandler(activator.HTTPOptions{
			URL: u, Headers: map[string]string{"X-Key": "k", "content-type": "text/plain"},
		}), activator.HandlerOptions{Batch: 1, MaxQueueReaders: 1})
	})
	h := s.send("one", "two")
	s.idle("server")
	web.mu.Lock()
	defer web.mu.Unlock()
	var keys, ports []string
	for i, r := range web.requests {
		user, password, _ := r.BasicAuth()
		if r.Method != http.MethodPost || r.URL.Path != "/handle" || r.Header.Get("Content-Type") != "application/json" ||
			r.Header.Get("X-Key") != "k" || user != "me" || password != "hunter2" || r.ContentLength != int64(len(web.bodies[i])) {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		ports = append(ports, r.RemoteAddr)
	}
	if len(keys) != 3 || keys[0] != keys[1] || keys[1] == keys[2] {
		t.Errorf("keys %q", keys)
	}
	if len(slices.Compact(ports)) != 1 {
		t.Errorf("the connection is not used again: %v", ports)
	}
	var q question
	if err := json.Unmarshal([]byte(web.bodies[2]), &q); err != nil || *q.Messages[0].Body != "two" || string(q.State) != `{"n":1}` ||
		q.Protocol != 1 || q.Queue != "server" || q.Messages[0].Number != 1 || q.Messages[0].Handle == h.String() {
		t.Errorf("%s, %v", web.bodies[2], err)
	}
}

// A service that is down is no failure of the messages: its queue waits for it, and other queues go on, even where all
// handlers share one connection.
func TestHTTPDown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec("select sb.create_queue('third'), sb.create_service('third', 'third', '{DEFAULT}')")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	cfg := s.config()
	log := &captured{}
	cfg.Logger = log.logger()
	cfg.PoolSize = 1
	var seen tally
	s.start(cfg, func(a *activator.Activator) {
		a.Handle("server", activator.HTTPHandler(activator.HTTPOptions{URL: "http://me:hunter2@" + address}))
		a.HandleFunc("third", seen.handle)
	})
	for range 20 {
		s.send("x")
	}
	resting := func() int { return strings.Count(log.String(), "the handler cannot work now") }
	for n := range 4 {
		s.eventually("it has been tried again", func() bool { return resting() > n })
		h, err := s.b.BeginDialog(t.Context(), sbroker.Dialog{From: "client", To: "third"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.b.SendText(t.Context(), h, sbroker.DefaultMessageType, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
		s.eventually("another queue is handled", func() bool { return seen.count(fmt.Sprint(n)) == 1 })
	}
	if n := value[int](s, "select consecutive_rollbacks from sb.queue_statistics where queue_name = 'server'"); n != 0 {
		t.Errorf("%d rollbacks count", n)
	}
	if n := strings.Count(log.String(), "connection refused"); n != resting() || strings.Contains(log.String(), "handler failed") ||
		strings.Contains(log.String(), "database trouble") || strings.Contains(log.String(), "hunter2") {
		t.Errorf("log:\n%s", log)
	}
	listener, err = net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	web.Listener.Close()
	web.Listener = listener
	web.Start()
	t.Cleanup(web.Close)
	s.idle("server")
	s.eventually("the log has it", func() bool { return strings.Contains(log.String(), "the handler works again") })
}

// "Not now" is no try, however often it is said, and is given the time it asks for. A gateway may have asked somebody.
func TestHTTPNotNow(t *testing.T) {
	t.Parallel()
	for status, counts := range map[int]bool{
		http.StatusServiceUnavailable: false, http.StatusTooManyRequests: false,
		http.StatusBadGateway: true, http.StatusGatewayTimeout: true,
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			const refusals = 10
			var (
				mu        sync.Mutex
				asked     time.Time // to be left alone
				early     time.Duration
				disturbed bool
			)
			web := newWebHandler(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case n < refusals || counts:
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(status)
				case n == refusals:
					asked = time.Now()
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(status)
				default:
					if pause := time.Since(asked); pause < time.Second {
						early, disturbed = pause, true
					}
					io.WriteString(w, "{}")
				}
			})
			s.start(s.config(), func(a *activator.Activator) {
				a.Handle("server", activator.HTTPHandler(activator.HTTPOptions{URL: web.URL}), activator.HandlerOptions{MaxQueueReaders: 1})
			})
			for range 20 {
				s.send("x")
			}
			if counts {
				s.eventually("the queue is off", func() bool {
					return !value[bool](s, "select is_receive_enabled from sb.service_queues where name = 'server'")
				})
				return
			}
			s.idle("server")
			mu.Lock()
			defer mu.Unlock()
			if disturbed {
				t.Errorf("asked again after %v", early)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "1.5": 0, "0": 100 * time.Millisecond, "7": 7 * time.Second, "31": 30 * time.Second,
		"99999999999999999999": 0, "18446744073709551615": 30 * time.Second,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:00:00 GMT": 100 * time.Millisecond,
		"Sat, 03 Jan 2026 03:04:15 GMT": 30 * time.Second,
	} {
		if got := activator.RetryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestHTTPMisbehaving(t *testing.T) {
	t.Parallel()
	target := newWebHandler(t, func(_ int, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	for name, test := range map[string]struct {
		serve func(w http.ResponseWriter, r *http.Request)
		want  string
	}{
		"status": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, "no cheese\n"+strings.Repeat("x", 10_000))
		}, `status 500 Internal Server Error: \"no cheese`},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
		}, "status 307"},
		"empty":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "malformed answer: not JSON"},
		"malformed": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "malformed answer: not JSON"},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat(" ", 2<<20)+"{}")
		}, "answer: longer than 1048576 bytes"},
		"time-out": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "handler timeout of 500ms"},
		"hang up": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
		}, "EOF"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "{}")
		}, "answer: unexpected EOF"},
		"failing action": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"actions":[{"begin_dialog":{"from_service":"nobody","to_service":"x"}}]}`)
		}, "actions[0].begin_dialog: sbroker: begin_dialog"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			var tried atomic.Bool
			web := newWebHandler(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				if tried.Swap(true) {
					io.WriteString(w, "{}")
					return
				}
				test.serve(w, r)
			})
			cfg := s.config()
			log := &captured{}
			cfg.Logger = log.logger()
			s.start(cfg, func(a *activator.Activator) {
				a.Handle("server", activator.HTTPHandler(activator.HTTPOptions{URL: strings.Replace(web.URL, "//", "//me:hunter2@", 1)}),
					activator.HandlerOptions{Timeout: 500 * time.Millisecond})
			})
			s.send("x")
			s.idle("server")
			text := log.String()
			// The transport tries again by itself when the connection was given up without a word.
			if strings.Count(text, "handler failed") != 1 && name != "hang up" || !strings.Contains(text, test.want) && name != "hang up" ||
				strings.Contains(text, "hunter2") || len(text) > 3000 {
				t.Errorf("log:\n%s\nwant %s", text, test.want)
			}
		})
	}
	if target.requests != nil {
		t.Error("a redirect was followed")
	}
}

// playProgram receives as a program does, through the URL of its environment, one message a transaction, until
// nothing is left. What the message says, it does.
func playProgram() {
	ctx := context.Background()
	dir := os.Getenv("DIR")
	_ = os.WriteFile(filepath.Join(dir, "pid "+strconv.Itoa(os.Getpid())), nil, 0o600)
	if os.Getenv("WATCH") != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	pool, err := connect(ctx, os.Getenv("SBROKER_DATABASE_URL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer pool.Close()
	for found := true; found; {
		err := sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
			messages, err := b.Receive(ctx, sbroker.QueueName(os.Getenv("SBROKER_QUEUE")), sbroker.ReceiveOptions{Max: 1})
			found = len(messages) > 0
			if err != nil || !found {
				return err
			}
			fmt.Println("got", messages[0].Text())
			if d, err := time.ParseDuration(messages[0].Text()); err == nil {
				time.Sleep(d)
			}
			if messages[0].Text() == "fail" {
				return errors.New("as I was told")
			}
			return b.End(ctx, messages[0].Conversation)
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
}

// playActivator is an activator in a process of its own.
func playActivator() {
	a, err := activator.New(activator.Config{DatabaseURL: os.Getenv("URL"), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		panic(err)
	}
	command := self("program", os.Getenv("DIR"))
	command.PassDatabase, command.DatabaseURL = true, os.Getenv("URL")
	a.HandleProgram("server", activator.ProgramOptions{Command: command, MaxQueueReaders: 2})
	a.Handle("client", activator.ExecHandler(activator.ExecOptions{Command: self("exec", os.Getenv("DIR"))}))
	if err := a.Run(context.Background()); err != nil {
		panic(err)
	}
}

func (s *stage) program(dir string) activator.ProgramOptions {
	command := self("program", dir)
	command.PassDatabase, command.DatabaseURL = true, s.db.URLAs(s.role)
	return activator.ProgramOptions{Command: command}
}

// A program is started when there is something, and again when something comes after it has ended.
// Rules: R-343
func TestProgram(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	log := &captured{}
	s.start(s.config(), func(a *activator.Activator) {
		o := s.program(dir)
		o.Command.Logger, o.MaxQueueReaders = log.logger(), 1
		a.HandleProgram("server", o)
	})
	for i := range 10 {
		s.send(fmt.Sprint(i))
	}
	s.idle("server")
	s.eventually("all have ended", func() bool {
		return value[int](s, "select count(*) from sb.dm_broker_activated_tasks") == 0
	})
	if n := len(traces(t, dir, "pid")); n != 1 {
		t.Errorf("%d programs for one backlog, want 1", n)
	}
	s.send("late")
	s.idle("server")
	s.eventually("its output is logged", func() bool { return strings.Contains(log.String(), `stream=stdout line="got late"`) })
	s.eventually("no reader slot is held", func() bool {
		return value[int](s, "select count(*) from pg_locks where locktype = 'advisory' and objsubid = 1") == 0
	})
}

// However many activators there are, no more programs run than the queue has readers, at every instant: of that the
// programs' own connections are the witnesses. And all of them are used.
// Rules: R-343
func TestProgramLimit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec("select sb.alter_queue('server', max_queue_readers => 3)")
	for range 60 {
		s.send("20ms")
	}
	dir := t.TempDir()
	for i := range 2 {
		cfg := s.config()
		cfg.Name = fmt.Sprint("activator ", i)
		s.start(cfg, func(a *activator.Activator) {
			o := s.program(dir)
			o.Command.Env["PGAPPNAME"] = "program"
			o.MaxQueueReaders = 10
			a.HandleProgram("server", o)
		})
	}
	top, slots := 0, 0
	for value[int](s, "select count(*) from sb.queue_messages where queue_name = 'server'") > 0 {
		var alive, held int
		err := s.pool.QueryRow(context.Background(), `
select (select count(*) from pg_stat_activity as a where a.datname = current_database() and a.application_name = 'program'),
       (select count(*) from pg_locks as l join pg_database as d on d.oid = l.database
        where d.datname = current_database() and l.locktype = 'advisory' and l.objsubid = 1)`).Scan(&alive, &held)
		if err != nil {
			t.Fatal(err)
		}
		top, slots = max(top, alive), max(slots, held)
	}
	if top != 3 || slots != 3 {
		t.Errorf("%d programs and %d slots at most, want 3", top, slots)
	}
}

// One that fails, or receives nothing, is not started in a hot loop; the state shows.
func TestProgramHotLoop(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"fails": "exit 1", "receives nothing": "exit 0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			dir := t.TempDir()
			s.start(s.config(), func(a *activator.Activator) {
				a.HandleProgram("server", activator.ProgramOptions{Command: activator.Command{
					Args: []string{"/bin/sh", "-c", `: >"$DIR/pid $$"; ` + script}, Env: map[string]string{"DIR": dir},
				}})
			})
			for range 3 {
				s.send("x")
			}
			s.eventually("the state shows", func() bool {
				return len(traces(t, dir, "pid")) > 1 &&
					value[int](s, `
select count(*) from sb_internal.queue_monitor as m join sb.service_queues as q on q.queue_id = m.queue_id
where q.name = 'server' and m.state = 'NOTIFIED'`) == 1
			})
			time.Sleep(time.Second)
			if n := len(traces(t, dir, "pid")); n > 12 {
				t.Errorf("started %d times in about a second", n)
			}
		})
	}
}

// One that handles a message for each start is started until nothing is left (B-40).
func TestProgramOneEach(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec("create procedure public.take_one() language sql as $$ select sb.end_conversation(conversation_handle) from sb.receive('server', 1) $$")
	psql, err := exec.LookPath("psql")
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql")
		if len(found) == 0 {
			t.Log("there is no psql: nothing to see here")
			return
		}
		psql = found[0]
	}
	s.start(s.config(), func(a *activator.Activator) {
		a.HandleProgram("server", activator.ProgramOptions{Command: activator.Command{
			Args:         []string{"/bin/sh", "-c", psql + ` -X -q -c "call public.take_one()" "$SBROKER_DATABASE_URL"`},
			PassDatabase: true, DatabaseURL: s.db.URLAs(s.role),
		}})
	})
	for range 10 {
		s.send("x")
	}
	s.idle("server")
}

// When Run is asked to end, a program gets SIGTERM; when it does not end in time, it is killed with all its children.
func TestProgramShutdown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		killed bool
	}{
		"heeds":   {`trap 'echo >"$DIR/said goodbye"; exit 0' TERM; while :; do sleep 0.05; done`, false},
		"ignores": {`trap "" TERM; sleep 60 & echo $! >"$DIR/child"; while :; do sleep 0.05; done`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			dir := t.TempDir()
			cfg := s.config()
			cfg.ShutdownTimeout = time.Second
			a := s.start(cfg, func(a *activator.Activator) {
				a.HandleProgram("server", activator.ProgramOptions{Command: activator.Command{
					Args: []string{"/bin/sh", "-c", `: >"$DIR/pid $$"; ` + test.script}, Env: map[string]string{"DIR": dir},
				}})
			})
			s.send("x")
			s.eventually("started", func() bool { return len(traces(t, dir, "pid")) == 1 })
			time.Sleep(200 * time.Millisecond) // for the trap
			began := time.Now()
			if err := a.stop(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); (took > time.Second) != test.killed || took > 4*time.Second {
				t.Errorf("stopping took %v", took)
			}
			if !gone(t, traces(t, dir, "pid")[0]) {
				t.Error("the program is left")
			}
			if said := len(traces(t, dir, "said")) == 1; said == test.killed {
				t.Errorf("said goodbye: %v", said)
			}
			if test.killed {
				child, err := os.ReadFile(filepath.Join(dir, "child"))
				if err != nil {
					t.Fatal(err)
				}
				s.eventually("the child is dead", func() bool { return gone(t, string(child)) })
			}
			s.noBackends()
		})
	}
}

// A program whose slot is lost, and one that takes too long, is killed.
func TestProgramKilled(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"slot", "timeout"} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.superuser(fmt.Sprintf("grant pg_signal_backend to %s", s.db.Owner))
			dir := t.TempDir()
			o := activator.ProgramOptions{Command: activator.Command{
				Args: []string{"/bin/sh", "-c", `trap "" TERM; : >"$DIR/pid $$"; while :; do sleep 0.05; done`},
				Env:  map[string]string{"DIR": dir},
			}, MaxQueueReaders: 1}
			if why == "timeout" {
				o.Timeout = 300 * time.Millisecond
			}
			s.start(s.config(), func(a *activator.Activator) { a.HandleProgram("server", o) })
			s.send("x")
			var first string
			s.eventually("started", func() bool {
				pids := traces(t, dir, "pid")
				if len(pids) > 0 {
					first = pids[0]
				}
				return first != ""
			})
			if why == "slot" {
				s.exec(`
select pg_terminate_backend(l.pid) from pg_locks as l join pg_database as d on d.oid = l.database
where d.datname = current_database() and l.locktype = 'advisory' and l.objsubid = 1`)
			}
			s.eventually("killed", func() bool { return gone(t, first) })
			s.eventually("started again", func() bool { return len(traces(t, dir, "pid")) > 1 })
		})
	}
}

// When the activator is killed with -9, its programs and handlers do not live on.
func TestKilledActivator(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=activator", "DIR="+dir, "URL="+s.db.URLAs(s.role), "WATCH=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	h := s.send("1m")
	s.send("1m")
	s.eventually("programs run", func() bool { return len(traces(t, dir, "pid")) == 2 })
	if err := s.b.BeginTimer(t.Context(), h, time.Millisecond); err != nil { // for the client's handler
		t.Fatal(err)
	}
	s.eventually("the handler runs", func() bool { return len(traces(t, dir, "pid")) == 3 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range traces(t, dir, "pid") {
		s.eventually("process "+pid+" has ended", func() bool { return gone(t, pid) })
	}
	s.eventually("the messages are free", func() bool {
		messages, err := s.b.Receive(t.Context(), "server", sbroker.ReceiveOptions{})
		return err == nil && len(messages) > 0
	})
}

// What is wrong with external handlers is known before Run connects.
func TestExternalMisuse(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(a *activator.Activator){
		"there is no command": func(a *activator.Activator) {
			a.Handle("q", activator.ExecHandler(activator.ExecOptions{}))
		},
		"the url is not": func(a *activator.Activator) {
			a.Handle("q", activator.HTTPHandler(activator.HTTPOptions{URL: "localhost:80"}))
		},
		"MaxQueueReaders": func(a *activator.Activator) {
			a.HandleProgram("q", activator.ProgramOptions{Command: activator.Command{Args: []string{"x"}}, MaxQueueReaders: -1})
		},
		"has a handler already": func(a *activator.Activator) {
			for range 2 {
				a.HandleProgram("q", activator.ProgramOptions{Command: activator.Command{Args: []string{"x"}}})
			}
		},
	} {
		a, err := activator.New(activator.Config{DatabaseURL: "postgres://nobody@127.0.0.1:1/none"})
		if err != nil {
			t.Fatal(err)
		}
		register(a)
		if err := a.Run(t.Context()); !errors.Is(err, activator.ErrCannotStart) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Bodies of every kind survive the way out and back.
func TestBodiesBothWays(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	web := newWebHandler(t, func(_ int, w http.ResponseWriter, r *http.Request) {})
	web.serve = func(n int, w http.ResponseWriter, _ *http.Request) {
		var q question
		web.mu.Lock()
		err := json.Unmarshal([]byte(web.bodies[n-1]), &q)
		web.mu.Unlock()
		if err != nil {
			t.Error(err)
		}
		actions := []any{}
		for _, m := range q.Messages {
			send := map[string]any{"conversation_handle": m.Handle, "message_type": m.Type, "message_body": m.Body}
			if m.Base64 != nil {
				delete(send, "message_body")
				send["message_body_base64"] = m.Base64
			}
			actions = append(actions, map[string]any{"send": send})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"actions": actions})
	}
	s.start(s.config(), func(a *activator.Activator) {
		a.Handle("server", activator.HTTPHandler(activator.HTTPOptions{URL: web.URL}), activator.HandlerOptions{MaxQueueReaders: 1})
	})
	h := s.send("first")
	bodies := [][]byte{
		nil, []byte("plain"), []byte("é \u2028 <&> \"\\"), []byte("{\"a\": 1}"),
		{0},
		{0xff, 0xfe},
		[]byte("a\x00b"),
		[]byte(strings.Repeat("long ", 40_000)),
	}
	for _, body := range bodies {
		if err := s.b.Send(t.Context(), h, sbroker.DefaultMessageType, body); err != nil {
			t.Fatal(err)
		}
	}
	got := s.answers(1 + len(bodies))
	for i, body := range bodies {
		if got[i+1] != string(body) {
			t.Errorf("%d: %s came back as %s", i, base64.StdEncoding.EncodeToString(body), base64.StdEncoding.EncodeToString([]byte(got[i+1])))
		}
	}
}
