package privatepg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 15 * time.Second
	// maxSocketDir leaves room for "/.s.PGSQL.65535.lock" in the 104 bytes the narrowest system gives a socket's path.
	maxSocketDir = 80
)

// startNative runs the server of an installation, making its data first when there are none.
func startNative(ctx context.Context, opts Options, h *home, bin string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	log, err := os.OpenFile(h.path("server.log"), os.O_CREATE|os.O_TRUNC|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	defer log.Close() // the server has its own descriptor

	if h.major == 0 {
		if err := initdb(ctx, h, bin, log); err != nil {
			return nil, err
		}
	} else if err := os.Remove(h.path("data", "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		// We hold the lock, which the server inherits, so the server that wrote this file is gone. Its number may
		// belong to another process by now, and would keep ours from starting.
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}

	for tries := 1; ; tries++ {
		server, port, err := launch(ctx, opts, h, bin, log)
		if err == nil {
			opts.Logger.Info("private PostgreSQL started", "bin", bin, "data", h.dir, "port", port)
			return server, nil
		}
		// With a port of our own choice another server may have been quicker.
		if opts.Port != 0 || tries == 5 || ctx.Err() != nil || !portTaken(port) {
			return nil, err
		}
	}
}

// initdb makes the data directory under another name first, so that a half-made one is never taken for a good one.
func initdb(ctx context.Context, h *home, bin string, log *os.File) error {
	locale := "C"
	if runtime.GOOS == "linux" {
		locale = "C.UTF-8"
	}
	p, err := startProcess(h, log, filepath.Join(bin, exe("initdb")),
		"--pgdata="+h.path("data.new"), "--username="+superuser, "--pwfile="+h.path("password"),
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale="+locale, "--no-sync", "--no-instructions")
	if err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("initdb: %w", ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("initdb%s: %w\n%s", h.owner, p.err, tail(log))
	}
	if err := os.Rename(h.path("data.new"), h.path("data")); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	return nil
}

// launch starts the server on a port and waits until it answers.
func launch(ctx context.Context, opts Options, h *home, bin string, log *os.File) (*Server, int, error) {
	port := opts.Port
	if port == 0 {
		var err error
		if port, err = freePort(); err != nil {
			return nil, 0, err
		}
	}
	socketDir := ""
	if runtime.GOOS != "windows" && len(h.dir) <= maxSocketDir {
		socketDir = h.dir
	}
	args := slices.Concat([]string{
		"-D", h.path("data"),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + strconv.Itoa(port),
		"-c", "unix_socket_directories=" + socketDir,
		"-c", "logging_collector=off",
	}, settings(opts))
	p, err := startProcess(h, log, filepath.Join(bin, exe("postgres")), args...)
	if err != nil {
		return nil, port, fmt.Errorf("postgres: %w", err)
	}
	server := &Server{
		addr:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		password: h.password,
		binDir:   bin,
		stop: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, stopTimeout)
			defer cancel()
			return errors.Join(p.stop(ctx, h.temporary), h.close())
		},
	}
	if err := server.wait(ctx, p.done); err != nil {
		p.kill()
		return nil, port, fmt.Errorf("postgres%s did not start: %w\n%s", h.owner, cmp.Or(p.err, err), tail(log))
	}
	return server, port, nil
}

// wait returns once the server takes connections.
func (s *Server) wait(ctx context.Context, died <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // whoever has our port instead may accept a connection and say nothing
		select {
		case <-died:
			cancel()
		case <-ctx.Done():
		}
	}()
	return poll(ctx, died, func() error {
		conn, err := pgx.Connect(ctx, s.URL())
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// tail returns the end of the log, where a failure is explained.
func tail(log *os.File) string {
	const size = 2048
	info, err := log.Stat()
	if err != nil {
		return ""
	}
	buf := make([]byte, size)
	n, _ := log.ReadAt(buf, max(0, info.Size()-size)) // a short read is the usual case
	return strings.TrimSpace(string(buf[:n]))
}

// serverEnv is our environment less what would bend the server's own configuration.
func serverEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") && !strings.HasPrefix(v, "LC_") && !strings.HasPrefix(v, "LANG") {
			env = append(env, v)
		}
	}
	return env
}
