// Package privatepg starts a PostgreSQL server that belongs to this process alone: for a demonstration, for
// development and for tests.
//
// [Start] takes the first of these that works: the programs in the directory SBROKER_PG_BIN names; an
// installation found on PATH or in the usual places, newest first; a container, when a Docker engine answers; a
// download into the user's cache. The server listens on the loopback address only, unless its container is on another
// host or beside our own, its superuser has a random password, and it never outlives the process, however that ends.
package privatepg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// superuser is the name of the one role a new server has.
const superuser = "postgres"

// ErrNoServer says that there is nothing on this machine to start a server from.
var ErrNoServer = errors.New("no PostgreSQL server to start")

// Options say how a server is started. The zero value is a throw-away server on a free port.
type Options struct {
	// DataDir keeps the server's files, password and log between starts; it is made when missing. Empty means a
	// temporary directory, in memory where there is room for it, removed when the server stops.
	DataDir string
	// Port is the TCP port on 127.0.0.1; 0 takes a free one.
	Port int
	// Fsync makes commits survive a crash of the machine. Without it the server is faster, and good for tests.
	Fsync bool
	// Settings are further server settings, by their names in postgresql.conf.
	Settings map[string]string
	// Logger hears what is started and from where; nil discards.
	Logger *slog.Logger
}

// Server is a running private server. Its methods are safe for concurrent use.
type Server struct {
	addr     string // host:port
	password string
	binDir   string
	stop     func(context.Context) error
	stopOnce sync.Once
	stopErr  error
}

// URL is the superuser's connection URL of the database postgres. It contains the password.
func (s *Server) URL() string { return s.DSN("postgres") }

// DSN is the superuser's connection URL of the named database, which need not exist yet.
func (s *Server) DSN(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     s.addr,
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// BinDir is the directory of the server's programs, empty when it runs in a container.
func (s *Server) BinDir() string { return s.binDir }

// Stop shuts the server down, disconnecting whoever is connected, and removes a temporary data directory. When ctx
// ends first, the server is killed. Every call after the first returns the first one's result.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

// Start starts a server and returns once it accepts connections. ctx bounds the start only. The caller defers
// [Server.Stop]; should the process die before that, the server stops and cleans up by itself.
func Start(ctx context.Context, opts Options) (*Server, error) {
	return start(ctx, opts, defaultSources())
}

func start(ctx context.Context, opts Options, from sources) (_ *Server, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	owner, err := serverAccount()
	if err != nil {
		return nil, err
	}
	h, err := openHome(opts.DataDir, owner)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()

	bin, err := from.installed(ctx, h.major)
	if err != nil {
		return nil, err
	}
	if bin != "" {
		return startNative(ctx, opts, h, bin)
	}
	server, dockerErr := from.docker(ctx, opts, h)
	if dockerErr == nil || !errors.Is(dockerErr, errNoContainer) {
		return server, dockerErr
	}
	bin, downloadErr := from.download(ctx, opts, h)
	if downloadErr == nil {
		return startNative(ctx, opts, h, bin)
	}
	wanted := fmt.Sprintf("PostgreSQL %d or newer", minMajor)
	if h.major != 0 {
		wanted = fmt.Sprintf("PostgreSQL %d, which made %s,", h.major, h.dir)
	}
	return nil, fmt.Errorf("%w: install %s (or name the directory of its initdb in %s), "+
		"or start a Docker engine, or give the URL of a server you already have (Docker: %w; download: %w)",
		ErrNoServer, wanted, binEnv, dockerErr, downloadErr)
}

// home is the directory that holds all of one server: data, password, log, and the lock that says it is in use.
type home struct {
	dir       string
	temporary bool
	owner     *account
	lock      *os.File
	password  string
	major     int // version of the data in it, 0 when there is none yet
}

// openHome makes or reopens the directory and takes its lock.
func openHome(dir string, owner *account) (_ *home, err error) {
	h := &home{dir: dir, owner: owner}
	if dir == "" {
		h.temporary = true
		h.dir, err = os.MkdirTemp(tempRoot(), "sbpg-")
	} else {
		h.dir, err = filepath.Abs(dir)
		if err == nil {
			err = os.MkdirAll(h.dir, 0o700)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("private PostgreSQL: %w", err), h.close())
		}
	}()
	if err := owner.own(h.dir); err != nil {
		return nil, err
	}
	if h.lock, err = lockHome(h.dir); err != nil {
		return nil, err
	}
	// Killed while initdb was at work: what it left is of no use.
	if err := os.RemoveAll(h.path("data.new")); err != nil {
		return nil, err
	}
	if h.password, err = h.loadPassword(); err != nil {
		return nil, err
	}
	version, err := os.ReadFile(h.path("data", "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	h.major, err = strconv.Atoi(strings.TrimSpace(string(version)))
	return h, err
}

// loadPassword returns the superuser's password, which lives as long as the data do.
func (h *home) loadPassword() (string, error) {
	file := h.path("password")
	kept, err := os.ReadFile(file)
	if err == nil && len(kept) > 0 {
		return string(kept), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	password := rand.Text()
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		return "", err
	}
	return password, h.owner.own(file)
}

func (h *home) path(elem ...string) string {
	return filepath.Join(append([]string{h.dir}, elem...)...)
}

// close releases the lock, and removes the directory when it is temporary.
func (h *home) close() error {
	var err error
	if h.temporary {
		err = os.RemoveAll(h.dir)
	}
	if h.lock != nil {
		err = errors.Join(err, h.lock.Close())
	}
	return err
}

// settings are what the server is started with, as -c arguments: a kept directory needs no file rewritten.
func settings(opts Options) []string {
	all := map[string]string{}
	if !opts.Fsync {
		all["fsync"] = "off"
		all["full_page_writes"] = "off"
		all["synchronous_commit"] = "off"
	}
	maps.Copy(all, opts.Settings)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "-c", name+"="+all[name])
	}
	return args
}

// freePort asks the kernel for a port nobody uses now. Somebody may take it before the server does.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// portTaken reports whether somebody listens on the port.
func portTaken(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return true
	}
	l.Close()
	return false
}

// poll calls try until it succeeds, done is closed, or ctx ends, and returns the last error.
func poll(ctx context.Context, done <-chan struct{}, try func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-done:
			return err
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
