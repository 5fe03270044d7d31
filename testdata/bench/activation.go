package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	riverqueue "github.com/riverqueue/river"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/sbroker"
)

// allWorkloads in the order of the table.
var allWorkloads = []*workload{
	workloadP1, workloadP2, workloadP3, workloadP4, workloadP5, workloadP6, workloadP7, workloadP8, workloadP9,
	workloadP10, workloadP11, workloadP12, workloadP13, workloadP14, workloadP15, workloadP16, workloadP17,
	workloadA1, workloadA2, workloadA3,
}

// activate runs an activator with a Go handler for the queue Work, until the function it returns is called.
func (b *bench) activate(ctx context.Context, options activator.HandlerOptions, handle activator.HandlerFunc) (stop func() error, err error) {
	a, err := activator.New(activator.Config{DatabaseURL: b.url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	a.Handle("Work", handle, options)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

var workloadA1 = &workload{
	id: "A1", about: "idle queue, one message: from the sender's commit to the start of the handler",
	lines: []line{
		{"p50", "ms", []target{below(3, 0)}},
		{"p99", "ms", []target{below(15, 0)}},
	},
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		if err := b.exec(ctx, `call bench.open('WorkService', 1)`); err != nil {
			return nil, err
		}
		if err := b.exec(ctx, `select * from sb.receive('Work')`); err != nil {
			return nil, err
		}
		if b.has(river) {
			if err := b.migrateRiver(ctx); err != nil {
				return nil, err
			}
		}
		quantity := max(10, b.n(100))
		return func(ctx context.Context, f figures) error {
			set := func(who string, p50, p99 float64) {
				f.set("p50", who, plain(p50))
				f.set("p99", who, plain(p99))
			}
			took, err := b.wakeUps(ctx, quantity)
			if err != nil {
				return err
			}
			set(ours, median(took), percentile(took, 99))
			if b.has(river) {
				if took, err = b.riverWakeUps(ctx, quantity); err != nil {
					return err
				}
				set(river, median(took), percentile(took, 99))
			}
			for _, who := range []string{graphile, pgboss} {
				if !b.has(who) {
					continue
				}
				_, values, err := b.runNode(ctx, who, "wakeUp", map[string]any{"quantity": quantity, "clients": 1})
				if err != nil {
					return err
				}
				set(who, values["p50"], values["p99"])
			}
			return nil
		}, nil
	},
}

// eachWakeUp sends one at a time to what has fallen asleep, and returns in ms how long the handler took to begin.
func eachWakeUp(ctx context.Context, quantity int, entered <-chan time.Time, send func() error) ([]float64, error) {
	const warmUp = 5
	var took []time.Duration
	for i := range quantity + warmUp {
		time.Sleep(20*time.Millisecond + rand.N(30*time.Millisecond))
		if err := send(); err != nil {
			return nil, err
		}
		committed := time.Now()
		select {
		case at := <-entered:
			if i >= warmUp {
				took = append(took, at.Sub(committed))
			}
		case <-time.After(30 * time.Second):
			return nil, fmt.Errorf("message %d was not handled in 30 s", i)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return milliseconds(took), nil
}

func (b *bench) wakeUps(ctx context.Context, quantity int) ([]float64, error) {
	entered := make(chan time.Time, 1)
	stop, err := b.activate(ctx, activator.HandlerOptions{}, func(context.Context, *activator.Batch) error {
		entered <- time.Now()
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = stop() }()
	var handle sbroker.Handle
	if err := b.pool.QueryRow(ctx, `select d.handle from bench.dialog as d`).Scan(&handle); err != nil {
		return nil, err
	}
	broker := sbroker.New(b.pool)
	return eachWakeUp(ctx, quantity, entered, func() error {
		return broker.Send(ctx, handle, sbroker.DefaultMessageType, []byte(body))
	})
}

func (b *bench) riverWakeUps(ctx context.Context, quantity int) ([]float64, error) {
	w := &riverWorker{pool: b.pool, wake: make(chan time.Time, 1)}
	// What the round before has left unfinished would be handled first, and every wake-up be taken for the next.
	if _, err := b.pool.Exec(ctx, `truncate river_job`); err != nil {
		return nil, err
	}
	client, err := b.riverClient(w, riverqueue.FetchCooldownMin)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = client.StopAndCancel(context.WithoutCancel(ctx)) }()
	return eachWakeUp(ctx, quantity, w.wake, func() error {
		_, err := client.Insert(ctx, riverJob{body}, nil)
		return err
	})
}

const (
	single    = "one per transaction"
	asShipped = "one per transaction, River as shipped" // with its default cooldown
	batches   = "batches of 100"
)

var workloadA2 = &workload{
	id: "A2", about: "8 readers with a handler that does nothing, 1,000 groups",
	lines: []line{
		{single, "messages/s", []target{of(single, river, 3, 0)}},
		{asShipped, "messages/s", []target{of(asShipped, river, 3, 0)}},
		{batches, "messages/s", []target{of(single, river, 10, 0)}},
	},
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		if b.has(river) {
			if err := b.migrateRiver(ctx); err != nil {
				return nil, err
			}
		}
		quantity := func(perSecond float64) int { return max(1000, int(perSecond*b.seconds.Seconds())) }
		return func(ctx context.Context, f figures) error {
			for _, m := range []struct {
				line  string
				each  int
				stock int
			}{{single, 1, quantity(20000) + 10000}, {batches, 100, quantity(150000) + 100000}} {
				v, err := b.handled(ctx, m.each, m.stock)
				if err != nil {
					return err
				}
				f.set(m.line, ours, v)
				if m.line == single {
					f.set(asShipped, ours, v)
				}
			}
			if b.has(river) {
				for line, cooldown := range map[string]time.Duration{single: riverqueue.FetchCooldownMin, asShipped: riverqueue.FetchCooldownDefault} {
					v, err := b.riverWork(ctx, quantity(10000)+10000, cooldown)
					if err != nil {
						return err
					}
					f.set(line, river, v)
				}
			}
			for _, m := range []struct {
				line, who, command string
				options            map[string]any
			}{
				{single, graphile, "work", map[string]any{"quantity": quantity(8000) + 8000}},
				{batches, graphile, "work", map[string]any{"quantity": quantity(20000) + 20000, "fast": true}},
				{single, pgboss, "fetch", map[string]any{"quantity": quantity(5000), "batch": 1}},
				{batches, pgboss, "work", map[string]any{"quantity": quantity(20000) + 20000, "batch": 100}},
			} {
				if !b.has(m.who) {
					continue
				}
				d, err := b.database(ctx, "bench_a2_rival")
				if err != nil {
					return err
				}
				v, _, err := d.runNode(ctx, m.who, m.command, m.options)
				d.end()
				if err != nil {
					return err
				}
				f.set(m.line, m.who, v)
			}
			return nil
		}, nil
	},
}

// handled measures how fast 8 readers empty a queue with so many messages, in batches of so many.
func (b *bench) handled(ctx context.Context, each, stock int) (figure, error) {
	d, err := b.database(ctx, fmt.Sprint("bench_a2_", each))
	if err != nil {
		return figure{}, err
	}
	defer d.end()
	for _, statement := range []string{
		`call bench.open('WorkService', 1000)`,
		fmt.Sprintf(`call bench.fill('WorkService', %d, %d)`, stock, each),
		`vacuum analyze`,
	} {
		if err := d.exec(ctx, statement); err != nil {
			return figure{}, err
		}
	}
	if err := d.checkpoint(ctx); err != nil {
		return figure{}, err
	}
	var n atomic.Int64
	stop, err := d.activate(ctx, activator.HandlerOptions{Batch: each, MaxQueueReaders: b.clients},
		func(_ context.Context, x *activator.Batch) error {
			n.Add(int64(len(x.Messages)))
			return nil
		})
	if err != nil {
		return figure{}, err
	}
	v, err := d.counted(ctx, &n, int64(stock))
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	return v, err
}

var workloadA3 = &workload{
	id: "A3", about: "memory and processor of sbactivator that watches 100 idle queues",
	lines: []line{
		{"memory", "MB", []target{below(40, 0)}},
		{"processor", "% of one", []target{below(1, 0)}},
	},
	once: true,
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		program := filepath.Join(b.dir, "sbactivator")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/sbactivator")
		build.Dir = b.root
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
		for _, statement := range []string{
			// A superuser runs no procedures.
			`create role bench_activator login password 'bench'`,
			`select sb.grant_admin('bench_activator')`,
			`create role bench_reader`,
			`grant bench_reader to bench_activator`,
			`create procedure public.nothing() language sql begin atomic select count(*) from sb.receive('Work'); end`,
			`select sb.create_queue('Idle' || n, activation_procedure => 'public.nothing', execute_as => 'bench_reader')
			   from generate_series(1, 100) as n`,
		} {
			if err := b.exec(ctx, statement); err != nil {
				return nil, err
			}
		}
		b.finally(func() {
			_ = b.exec(context.Background(), `drop owned by bench_activator, bench_reader`)
			_, _ = b.admin.Exec(context.Background(), `drop role bench_activator, bench_reader`)
		})
		config, err := pgx.ParseConfig(b.url)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, f figures) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, "run")
			cmd.Dir = b.dir
			cmd.Env = append(os.Environ(), "SBACTIVATOR_HTTP_LISTEN=127.0.0.1:0",
				fmt.Sprintf("SBACTIVATOR_DATABASE_URL=postgres://bench_activator:bench@%s:%d/%s?sslmode=disable",
					config.Host, config.Port, config.Database))
			log, err := os.Create(filepath.Join(b.dir, "log"))
			if err != nil {
				return err
			}
			defer log.Close()
			cmd.Stderr, cmd.Stdout = log, log
			if err := cmd.Start(); err != nil {
				return err
			}
			defer func() { _ = cmd.Wait() }()
			defer cancel()
			pid := strconv.Itoa(cmd.Process.Pid)
			for _, wait := range []time.Duration{5 * time.Second, 10 * b.seconds} { // to start, and to be watched
				before := processTime(pid)
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return ctx.Err()
				}
				f.set("processor", ours, plain((processTime(pid)-before)/wait.Seconds()*100))
			}
			kb := procNumber("/proc/"+pid+"/status", "VmHWM")
			var monitors int
			err = b.pool.QueryRow(ctx, `select count(*) from sb.dm_broker_queue_monitors`).Scan(&monitors)
			if err == nil && (kb == 0 || monitors < 100) {
				said, _ := os.ReadFile(log.Name())
				err = fmt.Errorf("the activator watches %d queues: %s", monitors, said)
			}
			f.set("memory", ours, plain(kb/1e3))
			return err
		}, nil
	},
}

const (
	senders32 = "32 senders"
	notifying = "32 senders, a NOTIFY with each send"
	noReaders = "32 senders, activation off"
)

var workloadP15 = &workload{
	id: "P15", about: "32 senders, fsync and synchronous_commit on, activation on, 4 readers busy with handlers of 20 ms",
	lines: []line{
		{noReaders, "messages/s", nil},
		{senders32, "messages/s", []target{of(noReaders, ours, 0.9, 0.97)}},
		{notifying, "messages/s", nil},
	},
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		if err := b.exec(ctx, `call bench.open('WorkService', 1000)`); err != nil {
			return nil, err
		}
		return func(ctx context.Context, f figures) error {
			for _, m := range []struct {
				line, script string
				isActive     bool
			}{{noReaders, "send", false}, {senders32, "send", true}, {notifying, "notify_send", false}} {
				stop := func() error { return nil }
				if m.isActive {
					// Readers that are busy, not readers that take the processors away from the senders.
					entered := make(chan struct{}, 1)
					var err error
					stop, err = b.activate(ctx, activator.HandlerOptions{Batch: 10, MaxQueueReaders: 4},
						func(ctx context.Context, _ *activator.Batch) error {
							select {
							case entered <- struct{}{}:
							default:
							}
							select {
							case <-time.After(20 * time.Millisecond):
							case <-ctx.Done():
							}
							return ctx.Err()
						})
					if err != nil {
						return err
					}
					select {
					case <-entered:
					case <-time.After(30 * time.Second):
						return fmt.Errorf("no reader began: %w", stop())
					}
				}
				v, err := b.runScript(ctx, m.script, pgbenchOptions{clients: 32, sync: "on"})
				if stopErr := stop(); err == nil {
					err = stopErr
				}
				if err != nil {
					return err
				}
				f.set(m.line, ours, v)
				if m.isActive {
					continue
				}
				// Something for the readers to begin with is there in any case; the rest goes.
				if err := b.exec(ctx, `truncate sb_internal.message, sb_internal.receive_cursor`); err != nil {
					return err
				}
				if err := b.exec(ctx, `call bench.fill('WorkService', 1000)`); err != nil {
					return err
				}
			}
			return nil
		}, nil
	},
}
