package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// The programs in the page about handlers are the files that the test below runs.
func TestHandlerPage(t *testing.T) {
	t.Parallel()
	page := readFile(t, "docs/activator-handlers.md")
	for language, file := range map[string]string{"python": "approve.py", "js": "audit.mjs", "sh": "legacy-reader.sh"} {
		if got := blocks(page, language); len(got) != 1 || got[0] != readFile(t, "testdata/handlers/"+file) {
			t.Errorf("the %s in the page is not testdata/handlers/%s", language, file)
		}
	}
	for _, text := range blocks(page, "json") {
		if !json.Valid([]byte(text)) {
			t.Errorf("not JSON:\n%s", text)
		}
	}
}

// The configuration of the page, with the programs of the page, in a process of its own; those whose language is
// there. One in sh that needs nothing else always is.
func TestRunHandlers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool := db.Pool(t)
	role := db.CreateRole(t, "activator")
	w := workshop{db: db, pool: pool, url: db.URLAs(role)}
	w.exec(t, "select sb.grant_admin('"+role+"')")
	for _, sql := range []string{
		"select sb.create_message_type('//expenses/Report', 'WELL_FORMED_JSON'), sb.create_message_type('//expenses/Answer', 'WELL_FORMED_JSON')",
		"select sb.create_contract('//expenses/Contract', '{//expenses/Report}', '{//expenses/Answer}')",
		"select sb.create_queue('client'), sb.create_service('client', 'client')",
		"select sb.create_queue('ExpenseQueue'), sb.create_service('expenses', 'ExpenseQueue', '{//expenses/Contract}')",
		"select sb.create_queue('AuditQueue'), sb.create_service('audit', 'AuditQueue', '{DEFAULT}')",
		"select sb.create_queue('LegacyQueue'), sb.create_service('legacy', 'LegacyQueue', '{DEFAULT}')",
		"select sb.create_queue('ShellQueue'), sb.create_service('shell', 'ShellQueue', '{DEFAULT}')",
		"create schema legacy create table received (id bigserial, body text)",
		"grant usage on schema legacy to " + role,
		"grant insert on legacy.received to " + role,
		"grant usage on sequence legacy.received_id_seq to " + role,
	} {
		w.exec(t, sql)
	}

	handlers, err := filepath.Abs(filepath.Join(root, "testdata/handlers"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	listener.Close()
	config := "http: { listen: '' }\n" + blocks(readFile(t, "docs/activator-handlers.md"), "yaml")[0]
	for old, replacement := range map[string]string{
		"approve.py": handlers + "/approve.py", "./legacy-reader.sh": handlers + "/legacy-reader.sh", "9000": port,
	} {
		config = strings.ReplaceAll(config, old, replacement)
	}
	without := func(program, queue string) bool {
		if _, err := exec.LookPath(program); err == nil {
			return false
		}
		t.Logf("there is no %s: %s is not handled", program, queue)
		config = regexp.MustCompile("(?m)^.*"+queue+".*\n").ReplaceAllString(config, "")
		return true
	}
	env := os.Environ()
	if psql := newestPsql(); psql != "" {
		env = append(env, "PATH="+os.Getenv("PATH")+":"+filepath.Dir(psql))
		t.Logf("psql is %s", psql)
	} else {
		without("psql", "LegacyQueue")
	}
	noPython, noNode, noPsql := without("python3", "ExpenseQueue"), without("node", "AuditQueue"), !strings.Contains(config, "LegacyQueue")
	config += `  - queue: ShellQueue
    type: exec
    command:
      - /bin/sh
      - -c
      - 'while read -r line; do echo "{\"state\": \"$GREETING\"}"; echo asked >&2; done'
    env: { GREETING: hello }
`
	if !noNode {
		node := exec.Command("node", filepath.Join(handlers, "audit.mjs"))
		node.Env = append(env, "PORT="+port, "AUDIT_FILE="+filepath.Join(dir, "audit.log"))
		node.Stderr = os.Stderr
		if err := node.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = node.Process.Kill()
			_ = node.Wait()
		})
		pgtest.Eventually(t, 20*time.Second, func() bool {
			conn, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
	file := filepath.Join(dir, "handlers.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, amount := range []int{900, 200} {
		w.exec(t, `
select sb.send(sb.begin_dialog('client', 'expenses', '//expenses/Contract', related_conversation_group => '7e1f9a5c-3c5f-4d0e-9b50-5f0a3a6b7c01'),
  '//expenses/Report', jsonb_build_object('number', 'X-1', 'amount', $1::int))`, amount)
	}
	for _, body := range []string{"one", "two"} {
		w.exec(t, "select sb.send(sb.begin_dialog('client', 'audit'), 'DEFAULT', $1::text)", body)
		w.exec(t, "select sb.send(sb.begin_dialog('client', 'legacy'), 'DEFAULT', $1::text)", body)
		w.exec(t, "select sb.send(sb.begin_dialog('client', 'shell'), 'DEFAULT', $1::text)", body)
	}
	p := startProcessIn(t, env, "run", "--config", file, "--database-url", w.url)
	count := func(sql string) func() bool {
		return func() bool { return w.count(t, sql) > 0 }
	}
	wait := func(what string, cond func() bool) {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for !cond() {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not in time\n%s", what, p.log)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	wait("sh", count(`select (count(*) = 2 and bool_and(state = '"hello"'))::int from sb.conversation_state where state <> '{}'
and jsonb_typeof(state) = 'string'`))
	if !noPython {
		wait("python", count(`
select (count(*) filter (where sb.body_json(message_body) ->> 'approved' = 'true') = 2)::int
from sb.queue_messages where queue_name = 'client' and message_type_name = '//expenses/Answer'`))
	}
	if !noNode {
		wait("node", count(`
select (count(*) = 2)::int from sb.queue_messages where queue_name = 'client' and sb.body_text(message_body) in ('line 1', 'line 2')`))
		text, err := os.ReadFile(filepath.Join(dir, "audit.log"))
		if err != nil || len(text) != len("one\ntwo\n") {
			t.Errorf("audit.log: %q, %v", text, err)
		}
	}
	if !noPsql {
		wait("psql", count("select (count(*) = 2)::int from legacy.received where body in ('one', 'two')"))
	}
	p.signal(t, syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, p.log)
	}
	text := p.log.String()
	if !strings.Contains(text, "line=asked") || strings.Contains(text, "level=ERROR") {
		t.Errorf("log:\n%s", text)
	}
	pgtest.Eventually(t, 10*time.Second, func() bool { return w.count(t, countAlive) == 0 })
}
