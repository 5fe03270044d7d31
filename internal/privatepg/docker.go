package privatepg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// errNoEngine is why a container was not even tried.
var errNoEngine = errors.New("no engine answers")

const (
	// containerMajor is the version of the default image.
	containerMajor = 17
	serverPort     = "5432/tcp"
	engineTimeout  = 5 * time.Second
)

// docker runs the server in a container, whose data are in h when they are to be kept. testcontainers' own watcher
// removes the container when we die.
func (s sources) docker(ctx context.Context, opts Options, h *home) (*Server, error) {
	if !s.engine {
		return nil, errNoEngine
	}
	if err := engineAnswers(ctx); err != nil {
		return nil, errors.Join(errNoEngine, err)
	}
	image := cmp.Or(s.image, fmt.Sprintf("postgres:%d", cmp.Or(h.major, containerMajor)))
	opts.Logger.Info("starting PostgreSQL in a container", "image", image)
	ctr, err := postgres.Run(ctx, image,
		testcontainers.WithLogger(log.NewNoopLogger()),
		testcontainers.WithCmd(append([]string{"postgres"}, settings(opts)...)...),
		testcontainers.WithEnv(map[string]string{
			"POSTGRES_USER":        superuser,
			"POSTGRES_PASSWORD":    h.password,
			"POSTGRES_DB":          "postgres",
			"POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C.UTF-8 --no-sync",
			"PGDATA":               "/sbroker/data",
		}),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			if h.temporary {
				host.Tmpfs = map[string]string{"/sbroker": "rw"}
			} else {
				host.Binds = append(host.Binds, h.dir+":/sbroker")
			}
			if opts.Port != 0 {
				binding := network.PortBinding{HostPort: strconv.Itoa(opts.Port)}
				host.PortBindings = network.PortMap{network.MustParsePort(serverPort): {binding}}
			}
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL in a container: %w",
			errors.Join(err, testcontainers.TerminateContainer(ctr)))
	}
	addr, err := ctr.PortEndpoint(ctx, serverPort, "")
	server := &Server{
		addr:     addr,
		password: h.password,
		stop: func(ctx context.Context) error {
			return errors.Join(testcontainers.TerminateContainer(ctr, testcontainers.StopContext(ctx)), h.close())
		},
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		err = server.wait(ctx, nil)
	}
	if err != nil {
		said := containerLog(ctx, ctr)
		return nil, fmt.Errorf("PostgreSQL in a container did not start: %w\n%s",
			errors.Join(err, testcontainers.TerminateContainer(ctr)), said)
	}
	return server, nil
}

// engineAnswers asks the Docker engine, if one is configured, for a sign of life.
func engineAnswers(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil { // how testcontainers says that it found no engine
			err = fmt.Errorf("%v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	provider, err := testcontainers.NewDockerProvider(
		testcontainers.Generic2DockerOptions(testcontainers.WithLogger(log.NewNoopLogger()))...)
	if err != nil {
		return err
	}
	return provider.Health(ctx) // closes the provider as well
}

func containerLog(ctx context.Context, ctr testcontainers.Container) string {
	r, err := ctr.Logs(ctx)
	if err != nil {
		return ""
	}
	defer r.Close()
	text, _ := io.ReadAll(r)
	return string(text[max(0, len(text)-2048):])
}
