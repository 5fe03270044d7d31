package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/privatepg"
)

//go:embed sql/*.sql
var scripts embed.FS

// template is the database that each workload gets a copy of.
const template = "bench_template"

// serverSettings are those of a small machine that does nothing else. Checkpoints come when a measurement begins.
var serverSettings = map[string]string{
	"shared_buffers":     "512MB",
	"max_wal_size":       "8GB",
	"checkpoint_timeout": "1h",
	"max_connections":    "300",
	"autovacuum_naptime": "5s",
	"lc_messages":        "C",
}

// server is a private server that is measured.
type server struct {
	*settings
	*privatepg.Server
	home       string
	postmaster int
	version    string
	admin      *pgx.Conn
	pgbench    string
	sync       string
	node       *node
	available  map[string]bool // rivals
}

// start starts a server of a version and makes the template.
func (s *settings) start(ctx context.Context, major, sync string) (_ *server, err error) {
	bin, err := s.binDir(ctx, major)
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("SBROKER_PG_BIN", bin); err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp(s.dir, "sbroker-bench-")
	if err != nil {
		return nil, err
	}
	srv := &server{settings: s, home: home, sync: sync, available: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, srv.close())
		}
	}()
	// The server's user has to reach its data; they are its own, below.
	if err := os.Chmod(home, 0o755); err != nil {
		return nil, err
	}
	if srv.pgbench, err = findPgbench(bin); err != nil {
		return nil, err
	}
	all := map[string]string{"synchronous_commit": sync}
	for name, value := range serverSettings {
		all[name] = value
	}
	srv.Server, err = privatepg.Start(ctx, privatepg.Options{
		DataDir: filepath.Join(home, "server"), Fsync: true, Settings: all,
	})
	if err != nil {
		return nil, err
	}
	pid, err := os.ReadFile(filepath.Join(home, "server", "data", "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(pid), "\n")
	if srv.postmaster, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		return nil, err
	}
	if srv.admin, err = pgx.Connect(ctx, srv.URL()); err != nil {
		return nil, err
	}
	if err := srv.admin.QueryRow(ctx, `show server_version`).Scan(&srv.version); err != nil {
		return nil, err
	}
	return srv, srv.makeTemplate(ctx)
}

// binDir is where a version's programs are: an installation, else a copy that scripts/postgres-version.sh fetches.
func (s *settings) binDir(ctx context.Context, major string) (string, error) {
	for _, pattern := range []string{"/usr/lib/postgresql/%s/bin", "/usr/pgsql-%s/bin", "/opt/homebrew/opt/postgresql@%s/bin"} {
		dir := fmt.Sprintf(pattern, major)
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.root, "scripts", "postgres-version.sh"), major)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("no PostgreSQL %s: %w", major, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// findPgbench looks beside the server, then for any: it need not be of the same version.
func findPgbench(bin string) (string, error) {
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench") // the pattern is good
	slices.Reverse(installed)
	for _, program := range slices.Concat([]string{filepath.Join(bin, "pgbench"), "pgbench"}, installed) {
		if found, err := exec.LookPath(program); err == nil {
			return found, nil
		}
	}
	return "", errors.New("pgbench is not installed")
}

func (s *server) makeTemplate(ctx context.Context) error {
	broker, err := os.ReadFile(s.sqlFile)
	if err != nil {
		return err
	}
	// Only psql knows this one; here an error ends everything anyway.
	broker = bytes.Replace(broker, []byte("\n\\set ON_ERROR_STOP on\n"), []byte("\n"), 1)
	setUp, err := scripts.ReadFile("sql/setup.sql")
	if err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, `create database `+template); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.DSN(template))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, file := range [][]byte{broker, setUp} {
		if _, err := conn.PgConn().Exec(ctx, string(file)).ReadAll(); err != nil {
			return fmt.Errorf("set-up: %w", err)
		}
	}
	return nil
}

// describe lists the settings that matter.
func (s *server) describe() string {
	parts := []string{"PostgreSQL " + s.version, "synchronous_commit=" + s.sync, "fsync=on"}
	for _, name := range []string{"shared_buffers", "max_wal_size", "checkpoint_timeout", "autovacuum_naptime"} {
		parts = append(parts, name+"="+serverSettings[name])
	}
	return strings.Join(parts, ", ")
}

func (s *server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	if s.admin != nil {
		_ = s.admin.Close(ctx)
	}
	if s.Server != nil {
		err = s.Stop(ctx)
	}
	return errors.Join(err, os.RemoveAll(s.home))
}

// cpu is the processor time that the server's processes have used, those that have ended included; NaN where there
// is no /proc. The background processes are part of the price.
func (s *server) cpu() float64 {
	postmaster := strconv.Itoa(s.postmaster)
	for {
		ended, ok := statFields(postmaster, 16)
		if !ok {
			return math.NaN()
		}
		total := ended
		for _, pid := range childrenOf(postmaster) {
			ticks, _ := statFields(pid, 14) // 0 if it has just ended: then we look again
			total += ticks
		}
		if again, _ := statFields(postmaster, 16); again == ended {
			return total / ticksPerSecond
		}
	}
}

// processTime is the processor time that a process has used itself, in seconds.
func processTime(pid string) float64 {
	ticks, ok := statFields(pid, 14)
	if !ok {
		return math.NaN()
	}
	return ticks / ticksPerSecond
}

// ticksPerSecond of every Linux that Go runs on.
const ticksPerSecond = 100

// statFields adds up two fields of /proc/PID/stat, counted as in proc(5).
func statFields(pid string, from int) (ticks float64, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range fields[from-3 : from-1] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	return ticks, true
}

func childrenOf(pid string) []string {
	threads, err := os.ReadDir(filepath.Join("/proc", pid, "task"))
	if err != nil {
		return nil
	}
	var all []string
	for _, thread := range threads {
		list, _ := os.ReadFile(filepath.Join("/proc", pid, "task", thread.Name(), "children")) // gone: no children
		all = append(all, strings.Fields(string(list))...)
	}
	return all
}

// procValue reads a "name: value" line of a file in /proc; empty when there is none.
func procValue(file, name string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// procNumber reads a "name: 123 kB" line.
func procNumber(file, name string) float64 {
	number, _, _ := strings.Cut(procValue(file, name), " ")
	n, _ := strconv.ParseFloat(number, 64)
	return n
}

// bench is what a workload works with: a database of its own on the server.
type bench struct {
	*server
	url   string
	pool  *pgxpool.Pool
	dir   string // for scripts and whatever else; removed at the end
	onEnd []func()
	// processed is how many transactions the last script has done.
	processed float64
}

// finally has something done when the workload has ended, last first.
func (b *bench) finally(f func()) { b.onEnd = append(b.onEnd, f) }

// database makes another database.
func (s *server) database(ctx context.Context, name string) (_ *bench, err error) {
	b := &bench{server: s, url: s.DSN(name)}
	defer func() {
		if err != nil {
			b.end()
		}
	}()
	_, err = s.admin.Exec(ctx, fmt.Sprintf(`create database %s template %s`, pgx.Identifier{name}.Sanitize(), template))
	if err != nil {
		return nil, err
	}
	b.finally(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := s.admin.Exec(ctx, fmt.Sprintf(`drop database %s with (force)`, pgx.Identifier{name}.Sanitize()))
		if err != nil && ctx.Err() == nil {
			note(os.Stdout, "database not dropped: %v", err)
		}
	})
	config, err := pgxpool.ParseConfig(b.url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 140
	if b.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	b.finally(b.pool.Close)
	if b.dir, err = os.MkdirTemp("", "sbroker-bench-"); err != nil {
		return nil, err
	}
	b.finally(func() { _ = os.RemoveAll(b.dir) })
	return b, nil
}

func (b *bench) end() {
	for _, f := range slices.Backward(b.onEnd) {
		f()
	}
}

// runWorkload runs the rounds of a workload. Those that went well are returned whatever happens later.
func (s *server) runWorkload(ctx context.Context, w *workload) ([]figures, error) {
	b, err := s.database(ctx, "bench_"+strings.ToLower(w.id))
	if err != nil {
		return nil, err
	}
	defer b.end()
	round, err := w.prepare(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("set-up: %w", err)
	}
	var rounds []figures
	for n := range s.rounds {
		if w.once && n > 0 {
			break
		}
		f := figures{}
		if err := round(ctx, f); err != nil {
			return rounds, err
		}
		f.log(os.Stdout, n+1)
		rounds = append(rounds, f)
	}
	return rounds, nil
}

// exec runs a statement in the workload's database.
func (b *bench) exec(ctx context.Context, statement string, args ...any) error {
	_, err := b.pool.Exec(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// connect returns so many connections of their own, closed in the end.
func (b *bench) connect(ctx context.Context, quantity int) ([]*pgx.Conn, error) {
	var conns []*pgx.Conn
	for range quantity {
		conn, err := pgx.Connect(ctx, b.url)
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
		b.finally(func() { _ = conn.Close(context.Background()) })
	}
	return conns, nil
}

// checkpoint writes out what was done before, so that it is not part of what is measured next.
func (s *server) checkpoint(ctx context.Context) error {
	_, err := s.admin.Exec(ctx, `checkpoint`)
	return err
}

// set changes settings of the running server, and returns what takes that back.
func (s *server) set(ctx context.Context, settings map[string]string) (reset func(), err error) {
	change := func(ctx context.Context, format string) error {
		for name, value := range settings {
			statement := strings.NewReplacer("{name}", name, "{value}", value).Replace(format)
			if _, err := s.admin.Exec(ctx, statement); err != nil {
				return err
			}
		}
		_, err := s.admin.Exec(ctx, `select pg_reload_conf()`)
		return err
	}
	reset = func() {
		if err := change(context.Background(), `alter system reset {name}`); err != nil {
			note(os.Stdout, "settings not reset: %v", err)
		}
	}
	if err := change(ctx, `alter system set {name} = {value}`); err != nil {
		return nil, err
	}
	// Backends hear of it with their next statement.
	time.Sleep(100 * time.Millisecond)
	return reset, nil
}

// jobs is how many threads pgbench runs.
func jobs(clients int) int { return min(clients, max(2, runtime.NumCPU())) }
