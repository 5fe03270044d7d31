package privatepg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/client"
)

// containerOnly leaves a container as the only way to a server. Nothing listens on port 1.
func containerOnly() sources {
	return sources{
		engine:     true,
		image:      os.Getenv("SBROKER_TEST_IMAGE"),
		repository: "http://127.0.0.1:1",
		cache:      os.DevNull,
	}
}

// haveContainers reports whether this machine can make a container. Where it has no engine, or no image and no way to
// get one, that has to be said, and the search has to go on.
func haveContainers(t *testing.T) bool {
	t.Helper()
	s, err := start(t.Context(), Options{}, containerOnly())
	if err == nil {
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		return true
	}
	if engine, engineErr := connectEngine(t.Context()); engineErr == nil {
		defer engine.Close()
		image := cmp.Or(containerOnly().image, fmt.Sprintf("postgres:%d", containerMajor))
		if _, imageErr := engine.Client().ImageInspect(t.Context(), image); imageErr == nil {
			t.Fatalf("with an engine and its image: %v", err)
		}
	}
	if containerOnly().image == "" && (!errors.Is(err, errNoContainer) || !errors.Is(err, ErrNoServer)) {
		t.Fatalf("without a container: got %v", err)
	}
	t.Log(err)
	return false
}

func TestContainer(t *testing.T) {
	t.Parallel()
	if !haveContainers(t) {
		return
	}
	t.Run("temporary", func(t *testing.T) {
		t.Parallel()
		s := mustStartContainer(t, Options{Settings: map[string]string{"max_connections": "17", "application_name": "it's spaced"}})
		conn := mustConnect(t, s.URL())
		for name, want := range map[string]string{
			"fsync": "off", "max_connections": "17", "server_encoding": "UTF8", "password_encryption": "scram-sha-256",
		} {
			if got := queryString(t, conn, "select current_setting($1)", name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
		wrong := &Server{addr: s.addr, password: "guess"}
		if c, err := pgx.Connect(t.Context(), wrong.URL()); err == nil {
			c.Close(t.Context())
			t.Error("a wrong password was accepted")
		}
		for range 2 {
			if err := s.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if listening(s.URL()) {
			t.Error("the container still listens")
		}
		containerGoes(t, s.URL())
	})
	t.Run("kept", func(t *testing.T) {
		t.Parallel()
		dir := reachableDir(t)
		s := mustStartContainer(t, Options{DataDir: dir, Fsync: true})
		mustExec(t, s.URL(), "create table kept as select 42 as answer")
		url := s.URL()
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := mustStartContainer(t, Options{DataDir: dir, Port: portOf(t, url), Fsync: true})
		if again.URL() != url {
			t.Errorf("URL = %s, want the earlier %s", again.URL(), url)
		}
		mustExec(t, again.URL(), "drop table kept")
	})
	t.Run("made on the host", func(t *testing.T) {
		t.Parallel()
		dir := reachableDir(t)
		s := mustStart(t, Options{DataDir: dir, Fsync: true})
		mustExec(t, s.URL(), "create table kept as select 42 as answer")
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The version that made them, in an image of its own.
		s, err := start(t.Context(), Options{DataDir: dir}, containerOnly())
		if errors.Is(err, errNoContainer) {
			t.Log(err)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, s.URL(), "drop table kept")
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("killed parent", func(t *testing.T) {
		t.Parallel()
		cmd, url := startChild(t, inContainer+"temporary")
		mustExec(t, url, "select 1")
		kill(t, cmd)
		containerGoes(t, url)
	})
	t.Run("killed parent, kept", func(t *testing.T) {
		t.Parallel()
		dir := reachableDir(t)
		cmd, url := startChild(t, inContainer+dir)
		mustExec(t, url, "create table survives as select 42 as answer")
		kill(t, cmd)
		// At once, while the old server may still be on its way out.
		s := mustStartContainer(t, Options{DataDir: dir})
		mustExec(t, s.URL(), "select s.answer from survives as s")
	})
	t.Run("bad setting", func(t *testing.T) {
		t.Parallel()
		dir := reachableDir(t)
		_, err := start(t.Context(), Options{DataDir: dir, Settings: map[string]string{"work_mem": "plenty"}}, containerOnly())
		if err == nil || !strings.Contains(err.Error(), "work_mem") {
			t.Errorf("got %v", err)
		}
		mustExec(t, mustStartContainer(t, Options{DataDir: dir}).URL(), "select 1")
	})
	t.Run("port in use", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		if _, err := start(t.Context(), Options{Port: port}, containerOnly()); err == nil ||
			!strings.Contains(err.Error(), strconv.Itoa(port)) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no image", func(t *testing.T) {
		t.Parallel()
		dir := reachableDir(t)
		if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("99\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		from := containerOnly()
		from.image = ""
		_, err := start(t.Context(), Options{DataDir: dir}, from)
		if !errors.Is(err, errNoContainer) || !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "postgres:99") {
			t.Errorf("an image nobody has: got %v", err)
		}
		from.image = "postgres:99"
		_, err = start(t.Context(), Options{}, from)
		if err == nil || errors.Is(err, errNoContainer) || !strings.Contains(err.Error(), "postgres:99") {
			t.Errorf("asked for an image nobody has: got %v", err)
		}
	})
}

func mustStartContainer(t *testing.T, opts Options) *Server {
	t.Helper()
	s, err := start(t.Context(), opts, containerOnly())
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

// containerGoes waits until the engine has no container any more that publishes the port of the URL.
func containerGoes(t *testing.T, url string) {
	t.Helper()
	engine, err := connectEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	eventually(t, "the container to go", func() bool {
		found, err := engine.Client().ContainerList(t.Context(), client.ContainerListOptions{
			All:     true,
			Filters: make(client.Filters).Add("publish", strconv.Itoa(portOf(t, url))),
		})
		return err == nil && len(found.Items) == 0
	})
}
