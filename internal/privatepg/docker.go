package privatepg

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// errNoContainer is why there is no container, so that something else may be tried: no engine, or no image.
var errNoContainer = errors.New("no container")

const (
	// containerMajor is the version of the default image.
	containerMajor = 17
	serverPort     = "5432/tcp"
	engineTimeout  = 5 * time.Second
	loopback       = "127.0.0.1"
)

// containerScript runs before the image's own. As on the host (see supervisor) the standard input is a pipe of ours:
// when we die, however suddenly, the engine closes it, the watcher tells the server to quit at once, and the engine
// removes the container. The watcher repeats itself because process 1 hears only the signals it has a handler for,
// which the scripts before the server have not. As on the host, too, new data get their name when they are complete.
// The server has its own file of who may connect: that of data made on the host lets only the host in.
const containerScript = `
trap 'exit 1' QUIT
exec 3<&0 </dev/null
{
  while read -r line <&3; do :; done
  while :; do kill -s QUIT 1; sleep 1; done
} &
exec 3<&-
printf 'local all all trust\nhost all all all scram-sha-256\n' >/tmp/pg_hba.conf
if [ ! -e "$PGDATA" ]; then
  PGDATA=$PGDATA.new docker-ensure-initdb.sh "$@" && mv "$PGDATA.new" "$PGDATA" || exit
fi
exec docker-entrypoint.sh "$@"
`

// docker runs the server in a container, whose data are in h when they are to be kept.
func (s sources) docker(ctx context.Context, opts Options, h *home) (*Server, error) {
	if !s.engine {
		return nil, errNoContainer
	}
	engine, err := connectEngine(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w, for no engine answers: %w", errNoContainer, err)
	}
	defer engine.Close()
	engineHost, err := engine.DaemonHost(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoContainer, err)
	}
	image := cmp.Or(s.image, fmt.Sprintf("postgres:%d", cmp.Or(h.major, containerMajor)))
	name := "" // the engine chooses
	if !h.temporary {
		name = fmt.Sprintf("sbroker-%.8x", sha256.Sum256([]byte(h.dir)))
		if err := takeOver(ctx, engine.Client(), name, h); err != nil {
			return nil, fmt.Errorf("PostgreSQL in a container: %w", err)
		}
	}
	opts.Logger.Info("starting PostgreSQL in a container", "image", image)
	tied := &tether{api: engine.Client(), done: make(chan struct{})}
	args := append(settings(opts), "-c", "listen_addresses=*", "-c", "hba_file=/tmp/pg_hba.conf")
	ctr, err := postgres.Run(ctx, image,
		testcontainers.WithLogger(log.NewNoopLogger()),
		testcontainers.CustomizeRequestOption(func(req *testcontainers.GenericContainerRequest) error {
			req.Name = name // WithName refuses an empty one
			return nil
		}),
		testcontainers.WithEntrypoint("/bin/sh", "-c", containerScript, "sbroker-postgres"),
		testcontainers.WithCmd(append([]string{"postgres"}, args...)...),
		testcontainers.WithEnv(map[string]string{
			"POSTGRES_USER":        superuser,
			"POSTGRES_PASSWORD":    h.password,
			"POSTGRES_DB":          "postgres",
			"POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C.UTF-8 --no-sync",
			"PGDATA":               "/sbroker/data",
		}),
		testcontainers.WithConfigModifier(func(config *container.Config) {
			config.OpenStdin, config.StdinOnce = true, true
			if !h.temporary {
				config.User = h.owner.ids() // who can reach the directory, and we what is made in it
			}
		}),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.AutoRemove = true
			host.ShmSize = 1 << 30 // parallel queries take more than the usual 64 MB
			if h.temporary {
				host.Tmpfs = map[string]string{"/sbroker": "rw"}
			} else {
				host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeBind, Source: h.dir, Target: "/sbroker"})
			}
			binding := network.PortBinding{HostPort: strconv.Itoa(opts.Port)}
			if engineHost == "localhost" { // else it is reached over a network, be it that of our own container
				binding.HostIP = netip.MustParseAddr(loopback)
			}
			host.PortBindings = network.PortMap{network.MustParsePort(serverPort): {binding}}
		}),
		testcontainers.WithAdditionalLifecycleHooks(testcontainers.ContainerLifecycleHooks{
			// Before it starts, so that it never runs without.
			PostCreates: []testcontainers.ContainerHook{tied.attach},
		}),
	)
	if ctr == nil && s.image == "" {
		return nil, fmt.Errorf("%w of image %s: %w", errNoContainer, image, err)
	}
	end := func(ctx context.Context, checkpoint bool) error {
		defer engine.Close()
		var err error
		if ctr != nil {
			if checkpoint {
				within := stopTimeout
				err = ctr.Stop(ctx, &within)
			}
			err = errors.Join(err, remove(ctx, engine.Client(), "id", ctr.GetContainerID()))
		}
		tied.cut() // which also ends what the engine has not
		return err
	}
	server := &Server{
		password: h.password,
		stop:     func(ctx context.Context) error { return errors.Join(end(ctx, !h.temporary), h.close()) },
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		server.addr, err = reach(ctx, ctr, engineHost, tied.done)
		if err == nil {
			err = server.wait(ctx, tied.done)
		}
	}
	if err != nil {
		err = errors.Join(err, end(context.WithoutCancel(ctx), false))
		return nil, fmt.Errorf("PostgreSQL in a container of image %s did not start: %w\n%s", image, err, tied.said.String())
	}
	if h.temporary {
		_ = os.RemoveAll(h.dir) // now, since nobody would when we are killed; nothing in it is needed any more
	}
	return server, nil
}

// configure keeps the library quiet, and its watcher away: that needs an image of its own, and the engine's socket in
// it. Our containers end by themselves. The library reads the variable once, when it is first asked for anything.
var configure = sync.OnceFunc(func() {
	log.SetDefault(log.NewNoopLogger())
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true") // the name is a good one
})

// connectEngine asks the Docker engine, if one is configured, for a sign of life. The caller closes it.
func connectEngine(ctx context.Context) (_ *testcontainers.DockerProvider, err error) {
	defer func() {
		if r := recover(); r != nil { // how testcontainers says that it found no engine
			err = fmt.Errorf("%v", r)
		}
	}()
	configure()
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	engine, err := testcontainers.NewDockerProvider(
		testcontainers.Generic2DockerOptions(testcontainers.WithLogger(log.NewNoopLogger()))...)
	if err != nil {
		return nil, err
	}
	if _, err := engine.Client().Ping(ctx, client.PingOptions{}); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

// takeOver ends what an earlier process has left running on the directory. We have its lock, so that process is dead,
// but its server need not be yet, and two servers in two containers would not see each other.
func takeOver(ctx context.Context, api client.APIClient, name string, h *home) error {
	if err := remove(ctx, api, "name", "^/"+name+"$"); err != nil {
		return err
	}
	err := os.Remove(h.path("data", "postmaster.pid")) // for the reason that startNative has
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// remove ends and removes the container that the filter finds, if any, and waits until it is gone: only then are its
// port and directory free.
func remove(ctx context.Context, api client.APIClient, filter, value string) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return poll(ctx, nil, func() error {
		found, err := api.ContainerList(ctx, client.ContainerListOptions{
			All:     true,
			Filters: make(client.Filters).Add(filter, value),
		})
		for _, c := range found.Items {
			_, err = api.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			err = cmp.Or(err, fmt.Errorf("container %s is still there", c.ID))
		}
		return err
	})
}

// reach finds the address of the server's port. From within a container the engine's host has to be guessed, and the
// guess is of no use where the engine runs beside us after all.
func reach(ctx context.Context, ctr testcontainers.Container, engineHost string, died <-chan struct{}) (string, error) {
	port, err := ctr.MappedPort(ctx, serverPort)
	if err != nil {
		return "", err
	}
	addr := net.JoinHostPort(loopback, port.Port())
	if engineHost == "localhost" {
		return addr, nil
	}
	dialer := net.Dialer{Timeout: time.Second}
	return addr, poll(ctx, died, func() error {
		var errs error
		for _, host := range []string{loopback, engineHost} {
			addr = net.JoinHostPort(host, port.Port())
			conn, err := dialer.DialContext(ctx, "tcp", addr)
			if err == nil {
				return conn.Close()
			}
			errs = errors.Join(errs, err)
		}
		return errs
	})
}

// tether ties a container to our life: it holds the container's standard input open, and hears what it says.
type tether struct {
	api    client.APIClient
	stream client.HijackedResponse
	said   lastWords
	done   chan struct{} // closed when the container has ended
}

func (t *tether) attach(ctx context.Context, ctr testcontainers.Container) error {
	attached, err := t.api.ContainerAttach(ctx, ctr.GetContainerID(), client.ContainerAttachOptions{
		Stream: true, Stdin: true, Stdout: true, Stderr: true,
	})
	if err != nil {
		return err
	}
	t.stream = attached.HijackedResponse
	go func() {
		defer close(t.done)
		_, _ = stdcopy.StdCopy(&t.said, &t.said, t.stream.Reader) // until it ends, or we cut it
	}()
	return nil
}

// cut lets go of the container, which ends it if it has not ended. From then on its last words may be read.
func (t *tether) cut() {
	if t.stream.Conn != nil { // it was attached
		t.stream.Close()
		<-t.done
	}
}

// lastWords keeps the end of what is written to it.
type lastWords struct{ text []byte }

func (w *lastWords) Write(p []byte) (int, error) {
	const size = 2048
	w.text = append(w.text, p...)
	w.text = w.text[max(0, len(w.text)-size):]
	return len(p), nil
}

func (w *lastWords) String() string { return string(bytes.TrimSpace(w.text)) }
