package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgsbroker/sbroker/internal/migrate"
	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/internal/privatepg"
	"github.com/pgsbroker/sbroker/migrations"
)

// daemon is sbactivator run within the test, on a free port.
type daemon struct {
	base string // of its URLs
	log  *pgtest.Buffer
	end  context.CancelFunc // what SIGTERM does
	code func() int         // waits for the exit code
}

var listensRE = regexp.MustCompile(`msg="listening for HTTP" address=(\S+)`)

func startDaemon(t *testing.T, databaseURL, settings string) *daemon {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sbactivator.yaml")
	if err := os.WriteFile(file, []byte("http: { listen: '127.0.0.1:0' }\n"+settings), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &daemon{log: &pgtest.Buffer{}, end: cancel}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"run", "--config", file, "--database-url", databaseURL, "--log-level", "debug"}, io.Discard, d.log)
	}()
	d.code = sync.OnceValue(func() int { return <-done })
	t.Cleanup(func() {
		cancel()
		if code := d.code(); code != exitDone {
			t.Errorf("exit code %d", code)
		}
		if t.Failed() {
			t.Logf("log:\n%s", d.log)
		}
		if strings.Contains(d.log.String(), "hunter2") {
			t.Error("the log has the password")
		}
	})
	pgtest.Eventually(t, 20*time.Second, func() bool {
		m := listensRE.FindStringSubmatch(d.log.String())
		if m != nil {
			d.base = "http://" + m[1]
		}
		return m != nil
	})
	return d
}

// noKeepAlive leaves no connection behind that a leak check would find.
var noKeepAlive = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}

// get returns code 0 when nobody answers.
func (d *daemon) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	response, err := noKeepAlive.Get(d.base + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// becomes waits for an answer of /readyz.
func (d *daemon) becomes(t *testing.T, code int, want string) {
	t.Helper()
	var (
		got  int
		body string
	)
	deadline := time.Now().Add(20 * time.Second)
	for {
		got, body = d.get(t, "/readyz")
		if got == code && strings.Contains(body, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz: %d %q, want %d %q", got, body, code, want)
		}
		time.Sleep(20 * time.Millisecond) // a pace, not a proof
	}
}

func (d *daemon) lives(t *testing.T) {
	t.Helper()
	if code, body := d.get(t, "/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz: %d %q", code, body)
	}
}

// role is the activator's.
func (w workshop) role(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.Username()
}

func (w workshop) superuser(t *testing.T, sql string) {
	t.Helper()
	if _, err := w.db.Superuser(t).Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// What /readyz says follows the state of the database, while /healthz stays.
func TestReadiness(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 0)
	d := startDaemon(t, w.url, "")
	d.becomes(t, http.StatusOK, "ready\n")

	w.exec(t, "delete from sb_internal.meta where version = $1", migrations.Latest())
	d.becomes(t, http.StatusServiceUnavailable, fmt.Sprintf("sb has version %d in this database, this program needs %d: run sbactivator migrate up",
		migrations.Latest()-1, migrations.Latest()))
	w.exec(t, "insert into sb_internal.meta (version, name) values ($1, 'newer')", migrations.Latest()+1)
	d.becomes(t, http.StatusOK, "ready")

	w.exec(t, "alter schema sb rename to gone")
	d.becomes(t, http.StatusServiceUnavailable, "sb is not installed")
	w.exec(t, "alter schema gone rename to sb")
	d.becomes(t, http.StatusOK, "ready")

	role := w.role(t)
	w.exec(t, "select sb.revoke_admin($1)", role)
	w.superuser(t, fmt.Sprintf("revoke %s from %s", w.db.Owner, role))
	d.becomes(t, http.StatusServiceUnavailable, "sb.grant_admin")
	w.exec(t, "select sb.grant_admin($1)", role)
	d.becomes(t, http.StatusOK, "ready")
	d.lives(t)
}

// While readers finish, /readyz says so and the rest is still answered; a message is handled to its end.
func TestDraining(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 0)
	gate := w.db.SessionAs(t, "gate", "")
	gate.Begin()
	gate.Exec("lock table public.done in exclusive mode")
	d := startDaemon(t, w.url, "")
	w.send(t, 1)
	pgtest.Eventually(t, 20*time.Second, func() bool {
		return w.count(t, "select count(*) from pg_locks as l where not l.granted and l.relation = 'public.done'::regclass") == 1
	})
	d.end()
	d.becomes(t, http.StatusServiceUnavailable, "stopping: nothing new is started, 1 reader still at work")
	d.lives(t)
	if families := d.scrape(t); value(families, "sbactivator_readers", "server") != 1 {
		t.Errorf("readers: %v", families["sbactivator_readers"])
	}
	gate.Rollback()
	if code := d.code(); code != exitDone || w.count(t, countDone) != 1 {
		t.Errorf("exit code %d", code)
	}
	if code, _ := d.get(t, "/healthz"); code != 0 {
		t.Errorf("answered with %d after the end", code)
	}
	pgtest.Eventually(t, 10*time.Second, func() bool { return w.count(t, countAlive) == 0 })
}

// A stopped database makes it unready and takes its figures out of the metrics, no more; it is ready again by itself.
func TestDatabaseStops(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sbactivator-http-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	options := privatepg.Options{DataDir: filepath.Join(dir, "data")}
	start := func() *privatepg.Server {
		t.Helper()
		server, err := privatepg.Start(t.Context(), options)
		if errors.Is(err, privatepg.ErrNoServer) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Stop(context.Background()) })
		return server
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	server := start()
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(u.Port(), &options.Port); err != nil {
		t.Fatal(err)
	}
	if err := migrate.Up(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, server.URL(), "")
	d.becomes(t, http.StatusOK, "ready")
	if value(d.scrape(t), "sbactivator_database_up") != 1 {
		t.Error("database_up is not 1")
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.becomes(t, http.StatusServiceUnavailable, "the database cannot be reached\nnot listening: ")
	d.lives(t)
	pgtest.Eventually(t, 2*figuresAge, func() bool {
		families := d.scrape(t)
		return value(families, "sbactivator_database_up") == 0 && families["sbactivator_queue_on"] == nil &&
			value(families, "sbactivator_listener_up") == 0 && families["go_goroutines"] != nil
	})
	start()
	d.becomes(t, http.StatusOK, "ready")
	pgtest.Eventually(t, 2*figuresAge, func() bool {
		families := d.scrape(t)
		return value(families, "sbactivator_database_up") == 1 && value(families, "sbactivator_listener_reconnects_total") >= 1
	})
}

// A database that does not answer any more does not make anybody wait for long.
func TestDatabaseHangs(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 0)
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := startProxy(t, u.Host)
	u.Host = proxy.address
	d := startDaemon(t, u.String(), "activation: { shutdown_timeout: 0s }")
	d.becomes(t, http.StatusOK, "ready")
	proxy.freeze()
	began := time.Now()
	d.becomes(t, http.StatusServiceUnavailable, "the database does not answer within 2s")
	pgtest.Eventually(t, 2*figuresAge, func() bool {
		began = time.Now()
		return value(d.scrape(t), "sbactivator_database_up") == 0
	})
	if took := time.Since(began); took > figuresTimeout+3*time.Second {
		t.Errorf("a scrape took %v", took)
	}
	d.lives(t)
	proxy.thaw()
	d.becomes(t, http.StatusOK, "ready")
}

// proxy passes on what comes, until it is frozen.
type proxy struct {
	address string
	mu      sync.RWMutex // held for writing while frozen
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String()}
	var all sync.WaitGroup
	pump := func(to, from net.Conn) {
		defer to.Close()
		defer from.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			p.mu.RLock()
			p.mu.RUnlock() //nolint:staticcheck // the wait is all
			if n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			all.Go(func() { pump(server, client) })
			all.Go(func() { pump(client, server) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	return p
}

func (p *proxy) freeze() { p.mu.Lock() }
func (p *proxy) thaw()   { p.mu.Unlock() }

// What waits for its database at the start lives already, and says why it is not ready.
func TestReadinessBeforeStart(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "postgres://nobody:hunter2@127.0.0.1:1/none", "")
	d.becomes(t, http.StatusServiceUnavailable, "starting: not connected to the database yet\nthe database cannot be reached\n")
	d.lives(t)
	if value(d.scrape(t), "sbactivator_database_up") != 0 {
		t.Error("database_up is not 0")
	}
	if _, body := d.get(t, "/readyz"); strings.Contains(body, "hunter2") || strings.Contains(body, "nobody") {
		t.Errorf("too much said: %q", body)
	}
}

// Nothing else is served: no profiles, nothing that writes.
func TestOnlyWhatIsNeeded(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "postgres://nobody:hunter2@127.0.0.1:1/none", "")
	for _, path := range []string{"/", "/debug/pprof/", "/debug/vars", "/metrics/", "/healthz/x"} {
		if code, _ := d.get(t, path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	response, err := noKeepAlive.Post(d.base+"/readyz", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", response.StatusCode)
	}
}

// An address that cannot be had is exit code 3 and one line; none at all is not listened on.
func TestListenAddress(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config := func(listen string) string {
		file := filepath.Join(t.TempDir(), "sbactivator.yaml")
		text := fmt.Sprintf("http: { listen: '%s' }\ndatabase: { startup_timeout: 0s }\n", listen)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for listen, want := range map[string]string{
		taken.Addr().String(): "address already in use",
		"192.0.2.1:8421":      "http.listen: ",
		"":                    "failed to connect",
	} {
		code, stdout, stderr := execute(t, "run", "--config", config(listen), "--database-url", "postgres://nobody:hunter2@127.0.0.1:1/none",
			"--log-level", "error")
		if code != exitConfig || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) || strings.Contains(stderr, "hunter2") {
			t.Errorf("%q: exit code %d, %q", listen, code, stderr)
		}
	}
}

// What is said of errors is plain, and never has anything of the connection.
func TestExplain(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"sb is not installed in this database: run sbactivator migrate up": &pgconn.PgError{Code: "42P01"},
		"the database refuses the role that logs in":                       fmt.Errorf("x: %w", &pgconn.PgError{Code: "28P01", Message: "for user bob"}),
		"the database refuses: too many clients":                           &pgconn.PgError{Code: "53300", Message: "too many clients"},
		"the database does not answer within 2s":                           fmt.Errorf("x: %w", context.DeadlineExceeded),
		"the database cannot be reached":                                   errors.New("dial tcp 10.1.2.3"),
	} {
		if got := explain(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
