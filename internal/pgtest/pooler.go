package pgtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler starts PgBouncer in transaction mode, with so many connections to the database of a URL, and returns a URL that
// leads through it, as the same role. Without PgBouncer the test is skipped, in CI it fails.
func Pooler(t testing.TB, to string, connections int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	server, err := pgx.ParseConfig(to)
	if err != nil {
		t.Fatal(err)
	}
	dir, port := t.TempDir(), FreePort(t)
	args := []string{"-q", filepath.Join(dir, "ini")}
	if os.Geteuid() == 0 { // which it refuses
		args = append([]string{"-u", "nobody"}, args...)
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chmod(d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = os.WriteFile(filepath.Join(dir, "ini"), fmt.Appendf(nil, `
[databases]
app = host=%s port=%d dbname=%s user=%s password=%s
[pgbouncer]
pool_mode = transaction
default_pool_size = %d
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
`, server.Host, server.Port, server.Database, server.User, server.Password, connections, port), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := fmt.Sprintf("postgres://%s@127.0.0.1:%d/app?sslmode=disable", server.User, port)
	Eventually(t, 10*time.Second, func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return false
		}
		_ = conn.Close(context.WithoutCancel(t.Context()))
		return true
	})
	return url
}

// FreePort returns a port that the system gives to nobody who only connects. Otherwise a client that connects again and
// again while the server is down would in the end be given the very port, and be connected to itself.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}
