package main

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed rivals
var nodeFiles embed.FS

// findRivals looks which rivals are there, and says so.
func (s *server) findRivals(ctx context.Context) (lines []string) {
	say := func(who, what string) {
		lines = append(lines, who+": "+what)
		note(os.Stdout, "%s: %s", who, what)
	}
	for _, who := range allRivals {
		if !slices.Contains(s.rivals, who) {
			continue
		}
		var version string
		var err error
		switch who {
		case pgq:
			version, err = s.extension(ctx, "pgq")
		case river:
			version = moduleVersion("github.com/riverqueue/river")
		case graphile, pgboss:
			if s.node == nil {
				s.node, err = findNode(ctx)
			}
			if err == nil {
				version, err = s.node.version(who)
			}
		case pgmq:
			version, err = s.pgmqVersion(ctx)
		}
		if err != nil {
			say(who, fmt.Sprintf("skipped, %v", err))
			continue
		}
		s.available[who] = true
		say(who, version)
	}
	return lines
}

// has reports whether a rival is there to be measured.
func (s *server) has(who string) bool { return s.available[who] }

func (s *server) extension(ctx context.Context, name string) (version string, err error) {
	err = s.admin.QueryRow(ctx, `select default_version from pg_available_extensions where name = $1`, name).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("the server has no extension %s", name)
	}
	return version, err
}

// moduleVersion of a module that is linked in.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown version"
}

// pgmqVersion looks at the database that was named: the extension is rarely packaged, so it may be on any server.
func (s *server) pgmqVersion(ctx context.Context) (version string, err error) {
	if s.pgmqURL == "" {
		return "", errors.New("-pgmq names no database that has it")
	}
	conn, err := pgx.Connect(ctx, s.pgmqURL)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, `
select format('%s on PostgreSQL %s, synchronous_commit=%s, fsync=%s, shared_buffers=%s', e.extversion,
         current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync'),
         current_setting('shared_buffers'))
  from pg_extension as e
 where e.extname = 'pgmq'`).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errors.New("the extension is not created in that database")
	}
	return version, err
}

// pgmqQueue makes an empty queue of pgmq, and drops it in the end.
func (b *bench) pgmqQueue(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.pgmqURL)
	if err != nil {
		return err
	}
	b.finally(func() {
		_, _ = conn.Exec(context.Background(), `select pgmq.drop_queue('sbroker_bench')`)
		_ = conn.Close(context.Background())
	})
	_, err = conn.Exec(ctx, `select pgmq.create('sbroker_bench')`)
	return err
}

// pgmqTopUp brings pgmq's queue to so many messages.
func (b *bench) pgmqTopUp(ctx context.Context, quantity int) error {
	conn, err := pgx.Connect(ctx, b.pgmqURL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `
select count(*)
  from generate_series(1, ($1::integer - (select count(*) from pgmq.q_sbroker_bench)) / 1000 + 1) as n
 cross join lateral pgmq.send_batch('sbroker_bench', array_fill(jsonb_build_object('body', $2::text, 'n', n), array[1000]))`,
		quantity, body)
	return err
}

// pgmqScript runs a script on pgmq's server, with the durability that ours has.
func (b *bench) pgmqScript(ctx context.Context, script string, simple bool) (figure, error) {
	return b.runScript(ctx, script, pgbenchOptions{simple: simple, url: b.pgmqURL, sync: b.sync, foreign: true})
}

// pgqQueue makes a queue of PgQ with a consumer. A tick for every hundred events, if somebody calls the ticker.
func (b *bench) pgqQueue(ctx context.Context) error {
	for _, statement := range []string{
		`create extension pgq`,
		`select pgq.create_queue('bench')`,
		`select pgq.register_consumer('bench', 'bench')`,
		`select pgq.set_queue_config('bench', 'ticker_max_count', '100')`,
	} {
		if err := b.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// pgqFill inserts events in batches of a hundred.
func (b *bench) pgqFill(ctx context.Context, batches int) error {
	for range batches {
		err := b.exec(ctx, `select count(pgq.insert_event('bench', 'DEFAULT', $1::text)) from generate_series(1, 100)`, body)
		if err == nil {
			err = b.exec(ctx, `select pgq.ticker('bench')`)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pgqConsume takes one batch, as PgQ's consumers do; 0 when there is none.
func pgqConsume(ctx context.Context, conn *pgx.Conn) (events int, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var batch *int64
		if err := tx.QueryRow(ctx, `select pgq.next_batch('bench', 'bench')`).Scan(&batch); err != nil || batch == nil {
			return err
		}
		rows, err := tx.Query(ctx, `select * from pgq.get_batch_events($1)`, *batch)
		if err != nil {
			return err
		}
		for rows.Next() {
			events++
		}
		if rows.Err() != nil {
			return rows.Err()
		}
		_, err = tx.Exec(ctx, `select pgq.finish_batch($1)`, *batch)
		return err
	})
	return events, err
}

// node runs the rivals that are written in JavaScript.
type node struct {
	program string
	dir     string
}

// oldestNode is what they need.
const oldestNode = "22.18.0"

// nodeDir is where npm puts them: outside of the repository.
func nodeDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "sbroker", "bench-rivals"), nil
}

// installNode fetches the rivals, and a Node that is new enough where there is none.
func installNode(ctx context.Context) error {
	dir, err := nodeDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := copyNodeFiles(dir); err != nil {
		return err
	}
	npm := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "npm", append(args, "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
		return cmd.Run()
	}
	if err := npm("install"); err != nil {
		return err
	}
	if _, err := findNode(ctx); err == nil {
		return nil
	}
	return npm("install", "--no-save", nodePackage()+"@22")
}

// nodePackage has the program in it for this machine.
func nodePackage() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return "node-" + runtime.GOOS + "-" + arch
}

func copyNodeFiles(dir string) error {
	for _, name := range []string{"package.json", "rivals.mjs"} {
		content, err := nodeFiles.ReadFile("rivals/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func findNode(ctx context.Context) (*node, error) {
	dir, err := nodeDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		return nil, errors.New("not installed: go run . -install")
	}
	if err := copyNodeFiles(dir); err != nil {
		return nil, err
	}
	for _, program := range []string{"node", filepath.Join(dir, "node_modules", nodePackage(), "bin", "node")} {
		out, err := exec.CommandContext(ctx, program, "--version").Output()
		if err == nil && compareVersions(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), oldestNode) >= 0 {
			return &node{program, dir}, nil
		}
	}
	return nil, fmt.Errorf("no Node %s or newer: go run . -install", oldestNode)
}

func compareVersions(a, b string) int {
	numbers := func(s string) (n [3]int) {
		_, _ = fmt.Sscanf(s, "%d.%d.%d", &n[0], &n[1], &n[2]) // what is missing is 0
		return n
	}
	x, y := numbers(a), numbers(b)
	return slices.Compare(x[:], y[:])
}

// version of an installed package.
func (n *node) version(name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(n.dir, "node_modules", name, "package.json"))
	if err != nil {
		return "", errors.New("not installed: go run . -install")
	}
	var p struct{ Version string }
	err = json.Unmarshal(content, &p)
	return p.Version, err
}

// runNode runs a command of rivals.mjs. Between what it prepares and what it measures it waits for us, so that the
// processor time is that of the measurement.
func (b *bench) runNode(ctx context.Context, who, command string, o map[string]any) (f figure, extra map[string]float64, err error) {
	options := map[string]any{
		"url": b.url, "who": who, "command": command, "body": body, "clients": b.clients, "seconds": b.seconds.Seconds(),
	}
	for name, value := range o {
		options[name] = value
	}
	arg, err := json.Marshal(options)
	if err != nil {
		return f, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute+3*b.seconds)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.node.program, "rivals.mjs", string(arg))
	cmd.Dir = b.node.dir
	var errors strings.Builder
	cmd.Stderr = &errors
	in, err := cmd.StdinPipe()
	if err != nil {
		return f, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return f, nil, err
	}
	if err := cmd.Start(); err != nil {
		return f, nil, err
	}
	lines := bufio.NewScanner(out)
	ended := func() error {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", who, command, err, errors.String())
		}
		return nil
	}
	answer := func() (map[string]float64, error) {
		for lines.Scan() {
			var values map[string]float64
			if line, ok := strings.CutPrefix(lines.Text(), "bench "); ok {
				return values, json.Unmarshal([]byte(line), &values)
			}
		}
		if err := ended(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s %s ended without an answer", who, command)
	}
	if _, err := answer(); err != nil { // it is ready
		return f, nil, err
	}
	if err := b.checkpoint(ctx); err != nil {
		return f, nil, err
	}
	before := b.cpu()
	if _, err := io.WriteString(in, "go\n"); err != nil {
		return f, nil, err
	}
	values, err := answer()
	used := b.cpu() - before
	if err != nil {
		return f, nil, err
	}
	return figure{values["n"] / values["seconds"], used / values["n"] * 1e6}, values, ended()
}
