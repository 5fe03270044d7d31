package privatepg

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// childEnv makes the test binary start a server in the directory it names ("temporary" for none), say its URL, and
// wait to be killed. With inContainer before the name the server is in a container.
const (
	childEnv    = "SBROKER_PRIVATEPG_CHILD"
	inContainer = "container:"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		child(dir)
	}
	goleak.VerifyTestMain(m)
}

func child(dir string) {
	from := defaultSources()
	dir, contained := strings.CutPrefix(dir, inContainer)
	if contained {
		from = containerOnly()
	}
	opts := Options{DataDir: dir, Fsync: true}
	if dir == "temporary" {
		opts = Options{}
	}
	s, err := start(context.Background(), opts, from)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(s.URL())
	select {}
}

func TestTemporary(t *testing.T) {
	t.Parallel()
	if !haveInstallation(t) {
		return
	}
	s := mustStart(t, Options{Settings: map[string]string{"max_connections": "17", "application_name": "it's spaced"}})
	conn := mustConnect(t, s.URL())
	for name, want := range map[string]string{
		"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "17",
		"listen_addresses": "127.0.0.1", "server_encoding": "UTF8", "password_encryption": "scram-sha-256",
	} {
		if got := queryString(t, conn, "select current_setting($1)", name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	dataDir := filepath.Dir(queryString(t, conn, "show data_directory"))
	if _, err := os.Stat(filepath.Join(s.BinDir(), exe("initdb"))); err != nil {
		t.Errorf("BinDir: %v", err)
	}

	wrong := &Server{addr: s.addr, password: "guess"}
	if c, err := pgx.Connect(t.Context(), wrong.URL()); err == nil {
		c.Close(t.Context())
		t.Error("a wrong password was accepted")
	}

	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	if _, err := os.Stat(dataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", dataDir, err)
	}
	if listening(s.URL()) {
		t.Error("the server still listens")
	}
}

func TestKeptDirectory(t *testing.T) {
	t.Parallel()
	dir := reachableDir(t)
	s := mustStart(t, Options{DataDir: dir, Fsync: true})
	mustExec(t, s.URL(), "create table kept as select 42 as answer")

	_, err := Start(t.Context(), Options{DataDir: dir})
	want := dir + ": already in use, by process " + strconv.Itoa(os.Getpid())
	if err == nil || (runtime.GOOS != "windows" && !strings.Contains(err.Error(), want)) {
		t.Fatalf("second Start in one directory: got %v, want %q", err, want)
	}

	url := s.URL()
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := mustStart(t, Options{DataDir: dir, Port: portOf(t, url), Fsync: true})
	if again.URL() != url {
		t.Errorf("URL = %s, want the earlier %s", again.URL(), url)
	}
	mustExec(t, again.URL(), "drop table kept")
	mustExec(t, again.URL(), "create database other")
	mustExec(t, again.DSN("other"), "select 1")
}

// A pid file whose number now belongs to another server of the same user would keep ours from starting.
func TestStalePidFile(t *testing.T) {
	t.Parallel()
	if !haveInstallation(t) {
		return
	}
	dir := reachableDir(t)
	s := mustStart(t, Options{DataDir: dir})
	other := mustStart(t, Options{})
	otherDir := queryString(t, mustConnect(t, other.URL()), "show data_directory")
	otherPid, err := os.ReadFile(filepath.Join(otherDir, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), otherPid, 0o600); err != nil {
		t.Fatal(err)
	}
	again := mustStart(t, Options{DataDir: dir})
	mustExec(t, again.URL(), "select 1")
	mustExec(t, other.URL(), "select 1")
}

func TestKilledParent(t *testing.T) {
	t.Parallel()
	t.Run("temporary", func(t *testing.T) {
		t.Parallel()
		cmd, url := startChild(t, "temporary")
		dir := filepath.Dir(queryString(t, mustConnect(t, url), "show data_directory"))
		kill(t, cmd)
		eventually(t, "the server to stop", func() bool { return !listening(url) })
		if runtime.GOOS != "windows" {
			eventually(t, "the directory to go", func() bool {
				_, err := os.Stat(dir)
				return errors.Is(err, os.ErrNotExist)
			})
		}
	})
	t.Run("kept", func(t *testing.T) {
		t.Parallel()
		dir := reachableDir(t)
		cmd, url := startChild(t, dir)
		mustExec(t, url, "create table survives as select 42 as answer")
		kill(t, cmd)
		// At once, while the old server may still be on its way out.
		s := mustStart(t, Options{DataDir: dir})
		mustExec(t, s.URL(), "select s.answer from survives as s")
	})
}

func TestFailedStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Settings: map[string]string{"work_mem": "plenty"}})
	if err == nil || !strings.Contains(err.Error(), "work_mem") {
		t.Errorf("bad setting: got %v", err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dir := reachableDir(t)
	if _, err := Start(t.Context(), Options{DataDir: dir, Port: port}); err == nil ||
		!strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Errorf("port in use: got %v", err)
	}
	// What failed has let go of its directory.
	mustExec(t, mustStart(t, Options{DataDir: dir}).URL(), "select 1")
}

func TestRootOnlyDirectory(t *testing.T) {
	t.Parallel()
	if !haveInstallation(t) {
		return
	}
	dir := reachableDir(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "data")
	s, err := Start(t.Context(), Options{DataDir: dir})
	if err == nil {
		err = s.Stop(t.Context())
	}
	if os.Geteuid() != 0 {
		if err != nil {
			t.Errorf("not as root, yet %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "cannot reach "+dir) {
		t.Errorf("as root: %v", err)
	}
}

func TestCancelledStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	root := reachableDir(t)
	for _, version := range []string{"9.6", "15", "17", "16"} {
		fakeInstallation(t, filepath.Join(root, version, "bin"), version)
	}
	// A client package: no server in it.
	if err := os.MkdirAll(filepath.Join(root, "18", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	from := sources{globs: []string{filepath.Join(root, "*", "bin")}}
	var order []string
	for _, dir := range from.candidates() {
		order = append(order, filepath.Base(filepath.Dir(dir)))
	}
	if want := []string{"18", "17", "16", "15", "9.6"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	for major, want := range map[int]string{0: "17", 16: "16", 13: ""} {
		if want != "" {
			want = filepath.Join(root, want, "bin")
		}
		if got, err := from.installed(t.Context(), major); err != nil || got != want {
			t.Errorf("installed(%d) = %q, %v, want %q", major, got, err, want)
		}
	}

	from.binDir = filepath.Join(root, "15", "bin")
	if got, err := from.installed(t.Context(), 0); err != nil || got != from.binDir {
		t.Errorf("with %s: %q, %v", binEnv, got, err)
	}
	if _, err := from.installed(t.Context(), 17); err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 17") {
		t.Errorf("with %s and data of another version: %v", binEnv, err)
	}
	from.binDir = filepath.Join(root, "18", "bin")
	if _, err := from.installed(t.Context(), 0); err == nil || !strings.Contains(err.Error(), binEnv) {
		t.Errorf("with %s without programs: %v", binEnv, err)
	}
}

func TestNothingToStart(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := start(t.Context(), Options{}, sources{repository: gone.URL, cache: t.TempDir()})
	if err == nil {
		t.Fatal("started a server from nowhere")
	}
	for _, want := range []string{"install PostgreSQL", binEnv, "Docker engine", "URL of a server", gone.URL} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %q", err, want)
		}
	}
}

// The archive holds bin/initdb and bin/postgres, shell scripts that pass on to the directory in REAL_BIN.
//
//go:embed testdata/programs.txz
var programs []byte

func TestDownload(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the archive's programs are shell scripts")
		return
	}
	if !haveInstallation(t) {
		return
	}
	real, err := defaultSources().installed(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("REAL_BIN", real)

	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(programs); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	requests := 0
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			sum := sha256.Sum256(jar.Bytes())
			fmt.Fprint(w, hex.EncodeToString(sum[:]))
			return
		}
		w.Write(jar.Bytes())
	}))
	defer repository.Close()
	defer http.DefaultClient.CloseIdleConnections()

	from := sources{repository: repository.URL, cache: filepath.Join(reachableDir(t), "cache")}
	for range 2 {
		s, err := start(t.Context(), Options{}, from)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, s.URL(), "select 1")
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(s.BinDir(), from.cache) {
			t.Errorf("BinDir = %s, want it in the cache", s.BinDir())
		}
	}
	if requests != 2 {
		t.Errorf("%d requests, want the archive and its checksum once", requests)
	}
	left, _ := filepath.Glob(filepath.Join(from.cache, "unpack-*"))
	if len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

// haveInstallation reports whether servers here come from an installation. Where they come from containers, TestContainer
// has what there is to test. The gate (.ci/run) installs one.
func haveInstallation(t *testing.T) bool {
	t.Helper()
	bin, err := defaultSources().installed(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if bin == "" {
		t.Log("no PostgreSQL is installed")
	}
	return bin != ""
}

func mustStart(t *testing.T, opts Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustConnect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func mustExec(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func queryString(t *testing.T, conn *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	var value string
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// reachableDir is a temporary directory whose parents are open to the server's user, which t.TempDir's are not.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(tempRoot(), "sbpg-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func fakeInstallation(t *testing.T, bin, version string) {
	t.Helper()
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s (Debian)'\n", version)
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(bin, exe(name)), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// startChild runs this test binary as a process with a server of its own.
func startChild(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(url, "postgres://") {
		t.Fatalf("child said %q, %v", line, err)
	}
	return cmd, url
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
}

func portOf(t *testing.T, url string) int {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return int(config.Port)
}

func listening(url string) bool {
	config, err := pgx.ParseConfig(url)
	return err == nil && portTaken(int(config.Port))
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := poll(ctx, nil, func() error {
		if !cond() {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil {
		t.Fatalf("waited in vain for %s", what)
	}
}
