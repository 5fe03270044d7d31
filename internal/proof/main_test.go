//go:build linux

// Package proof tests the activator as it is run: as processes of sbactivator, several on one database, that are killed,
// frozen and cut off, on servers to which the same happens.
//
// What is measured is measured by the server's clock. The gate runs on machines that are busy with other tests, so there a
// time that is promised may take three times as long; with SBROKER_SOAK (make soak) it may not.
package proof

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// roleVariable makes this test binary, started as a handler, play its part.
const roleVariable = "PROOF_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "clerk" {
		clerk()
		os.Exit(0)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // these tests sleep most of the time
		panic(err)
	}
	pgtest.Main(m)
}

// clerk is an exec handler: it answers each message with what it says, and when its work on the batch began and ended. In
// the directory DIR it leaves its process id. The first of all whose LINGER names the same file takes LINGER_FOR.
func clerk() {
	if dir := os.Getenv("DIR"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), nil, 0o644); err != nil {
			panic(err)
		}
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		began := time.Now()
		var request struct {
			Messages []struct {
				Conversation string `json:"conversation_handle"`
				Body         string `json:"message_body"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(line, &request); err != nil {
			panic(err)
		}
		pause := time.Duration(rand.ExpFloat64() * float64(5*time.Millisecond))
		if once := os.Getenv("LINGER"); once != "" {
			if f, err := os.OpenFile(once, os.O_CREATE|os.O_EXCL, 0o644); err == nil {
				f.Close()
				if pause, err = time.ParseDuration(os.Getenv("LINGER_FOR")); err != nil {
					panic(err)
				}
			}
		}
		time.Sleep(pause)
		actions := []any{} // not null
		for _, m := range request.Messages {
			body := fmt.Sprintf("%s %d %d %d", m.Body, os.Getpid(), began.UnixMicro(), time.Now().UnixMicro())
			actions = append(actions, map[string]any{"send": map[string]string{
				"conversation_handle": m.Conversation, "message_type": "DEFAULT", "message_body": body,
			}})
		}
		answer, err := json.Marshal(map[string]any{"actions": actions})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", answer)
	}
}

// soak is how long a soak test runs: SBROKER_SOAK. Without it the same code runs for a shorter time in the gate.
func soak(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SBROKER_SOAK")
	if text == "" {
		t.Skip("SBROKER_SOAK holds no duration; the same runs for a shorter time in the tests without Soak")
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// atMost is how long something may take that is promised to take d.
func atMost(d time.Duration) time.Duration {
	if os.Getenv("SBROKER_SOAK") != "" {
		return d
	}
	return 3 * d
}

// program is sbactivator, built once: with the race detector where the tests are. The file has no name any more, so that it
// is gone with this process, however that ends.
var program = sync.OnceValues(func() (*os.File, error) {
	dir, err := os.MkdirTemp("", "proof-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	args := []string{"build", "-o", dir, "github.com/pgsbroker/sbroker/cmd/sbactivator"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "-race" && setting.Value == "true" {
				args = append([]string{"build", "-race"}, args[1:]...)
			}
		}
	}
	if output, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, output)
	}
	return os.Open(filepath.Join(dir, "sbactivator"))
})

// process is a running sbactivator.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *pgtest.Buffer
	done chan struct{} // closed when it has ended
	err  error         // then
}

// start runs sbactivator with settings NAME=value, of its environment, until the test ends.
func start(t *testing.T, url string, settings ...string) *process {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, log: &pgtest.Buffer{}, done: make(chan struct{})}
	p.cmd = exec.Command(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()), "run", "--database-url", url)
	p.cmd.Env = append(os.Environ(), "SBACTIVATOR_HTTP_LISTEN=127.0.0.1:0", "SBACTIVATOR_ACTIVATION_SHUTDOWN_TIMEOUT=10s")
	p.cmd.Env = append(p.cmd.Env, settings...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		text := p.log.String()
		if strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") {
			t.Error("see the log")
		}
		if t.Failed() {
			const size = 8 << 10
			t.Logf("log of process %d:\n%s", p.cmd.Process.Pid, text[max(0, len(text)-size):])
		}
	})
	return p
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("%v: %v", s, err)
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.done
}

// stop asks it to end, which has to go well and in time.
func (p *process) stop() {
	p.t.Helper()
	began := time.Now()
	p.signal(syscall.SIGTERM)
	p.ends(began)
}

// ends waits for the end of one that was asked to at began.
func (p *process) ends(began time.Time) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.t.Errorf("process %d does not end", p.cmd.Process.Pid)
		return
	}
	if p.log.String() == "" && p.err != nil && p.err.Error() == "signal: terminated" {
		return // so young that it had not got round to handling signals
	}
	// The shutdown timeout, and what cleaning up may take.
	if took := time.Since(began); p.err != nil || took > atMost(15*time.Second) {
		p.t.Errorf("process %d ended after %v: %v", p.cmd.Process.Pid, took, p.err)
	}
}

// stage is a database with the broker and roles for an application and its activators.
type stage struct {
	*testing.T
	pool         *pgxpool.Pool // of the owner
	owner, login string        // roles: of the application, and its handlers; of the activators
	url          func(role string) string
}

// newStage makes one on the server that tests share.
func newStage(t *testing.T) *stage {
	t.Helper()
	db := pgtest.New(t)
	s := &stage{T: t, pool: db.Pool(t), owner: db.Owner, login: db.CreateRole(t, "activator"), url: db.URLAs}
	if _, err := db.Superuser(t).Exec(t.Context(), fmt.Sprintf("grant %s to %s; grant pg_signal_backend, pg_read_all_stats to %s", s.owner, s.login, s.owner)); err != nil {
		t.Fatal(err)
	}
	s.exec("select sb.grant_admin($1)", s.login)
	return s
}

func (s *stage) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.pool.Exec(context.Background(), sql, args...); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// start runs an activator.
func (s *stage) start(settings ...string) *process {
	s.Helper()
	return start(s.T, s.url(s.login), settings...)
}

// value returns the only value of a statement.
func value[V any](s *stage, sql string, args ...any) (v V) {
	s.Helper()
	if err := s.pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return v
}

// within waits until a query is true.
func (s *stage) within(limit time.Duration, what, sql string, args ...any) {
	s.Helper()
	deadline := time.Now().Add(limit)
	for !value[bool](s, sql, args...) {
		if time.Now().After(deadline) {
			s.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(10 * time.Millisecond) // a pace, not a proof
	}
}

// eventually is within a time that is not the point.
func (s *stage) eventually(what, sql string, args ...any) {
	s.Helper()
	s.within(time.Minute, what, sql, args...)
}

// none fails for each row of a query.
func (s *stage) none(what, sql string) {
	s.Helper()
	if rows := pgtest.Strings(s.T, s.pool, sql+" limit 10"); len(rows) > 0 {
		s.Errorf("%s: %q", what, rows)
	}
}

// noneLeft says that activators and their handlers have left nothing behind.
func (s *stage) noneLeft(dir string) {
	s.Helper()
	s.within(atMost(5*time.Second), "no connection is left", `
select count(*) = 0 from pg_stat_activity where datname = current_database() and application_name like 'sbactivator %'`)
	s.within(atMost(5*time.Second), "no lock is left", `
select count(*) = 0 from pg_locks as l join pg_database as d on d.oid = l.database
 where d.datname = current_database() and l.locktype = 'advisory'`)
	s.none("task left", "select * from sb.dm_broker_activated_tasks")
	s.noClerks(dir)
}

// noClerks waits until every clerk has ended.
func (s *stage) noClerks(dir string) {
	s.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range entries {
		pgtest.Eventually(s.T, time.Minute, func() bool {
			// Its number may be another process's by now.
			command, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
			return errors.Is(err, fs.ErrNotExist) || len(command) == 0 || !bytes.HasPrefix(command, []byte(os.Args[0]))
		})
	}
}

// clerkSettings makes queues be handled by clerks.
func clerkSettings(t *testing.T, dir string, readers int, queues ...string) string {
	t.Helper()
	var handlers []any
	for _, queue := range queues {
		handlers = append(handlers, map[string]any{
			"queue": queue, "type": "exec", "command": []string{os.Args[0]}, "max_queue_readers": readers,
			"env": map[string]string{roleVariable: "clerk", "DIR": dir},
		})
	}
	text, err := json.Marshal(handlers)
	if err != nil {
		t.Fatal(err)
	}
	return "SBACTIVATOR_HANDLERS=" + string(text)
}
