package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	riverqueue "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverJob carries the same body as the messages.
type riverJob struct {
	Body string `json:"body"`
}

// Kind names the job.
func (riverJob) Kind() string { return "bench" }

// riverWorker completes a job in a transaction of its own, as an application does that has to do its work exactly
// once: River's JobCompleteTx is what comes closest to a handler's transaction.
type riverWorker struct {
	riverqueue.WorkerDefaults[riverJob]
	pool *pgxpool.Pool
	done atomic.Int64
	wake chan time.Time // not nil: hears when the handler begins
}

// Work completes the job.
func (w *riverWorker) Work(ctx context.Context, job *riverqueue.Job[riverJob]) error {
	if w.wake != nil {
		w.wake <- time.Now()
	}
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		_, err := riverqueue.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
	if err == nil {
		w.done.Add(1)
	}
	return err
}

// migrateRiver makes River's tables in the workload's database.
func (b *bench) migrateRiver(ctx context.Context) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(b.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// riverClient returns a client; with a worker it can be started. The cooldown is how long it leaves between two fetches of
// as many jobs as there are idle workers.
func (b *bench) riverClient(w *riverWorker, cooldown time.Duration) (*riverqueue.Client[pgx.Tx], error) {
	config := &riverqueue.Config{Logger: slog.New(slog.DiscardHandler)}
	if w != nil {
		config.Queues = map[string]riverqueue.QueueConfig{riverqueue.QueueDefault: {MaxWorkers: b.clients}}
		config.Workers = riverqueue.NewWorkers()
		config.FetchCooldown = cooldown
		riverqueue.AddWorker(config.Workers, w)
	}
	return riverqueue.NewClient(riverpgxv5.New(b.pool), config)
}

func riverJobs(quantity int) []riverqueue.InsertManyParams {
	jobs := make([]riverqueue.InsertManyParams, quantity)
	for i := range jobs {
		jobs[i].Args = riverJob{body}
	}
	return jobs
}

// riverInsert measures inserts of so many jobs each.
func (b *bench) riverInsert(ctx context.Context, each int) (figure, error) {
	client, err := b.riverClient(nil, 0)
	if err != nil {
		return figure{}, err
	}
	jobs := riverJobs(each)
	l, err := b.load(ctx, b.clients, 10, b.seconds, func(ctx context.Context, _ int) (int, error) {
		var err error
		if each == 1 {
			_, err = client.Insert(ctx, jobs[0].Args, nil)
		} else {
			_, err = client.InsertManyFast(ctx, jobs)
		}
		return 1, err
	})
	return l.figure, err
}

// riverWork measures how fast so many workers do jobs.
func (b *bench) riverWork(ctx context.Context, quantity int, cooldown time.Duration) (f figure, err error) {
	w := &riverWorker{pool: b.pool}
	client, err := b.riverClient(w, cooldown)
	if err != nil {
		return f, err
	}
	for left := quantity; left > 0; left -= 10000 {
		if _, err := client.InsertManyFast(ctx, riverJobs(min(left, 10000))); err != nil {
			return f, err
		}
	}
	if err := client.Start(ctx); err != nil {
		return f, err
	}
	f, err = b.counted(ctx, &w.done, int64(quantity))
	stopErr := client.StopAndCancel(context.WithoutCancel(ctx))
	if err == nil {
		err = stopErr
	}
	_, _ = b.pool.Exec(ctx, `truncate river_job`)
	return f, err
}

// counted lets the work go on for a second, in which connections are made and plans, and then measures how fast a counter
// goes up, until all is done.
func (b *bench) counted(ctx context.Context, counter *atomic.Int64, total int64) (figure, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute+b.seconds)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	wait := func(until func() bool) error {
		for !until() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	if err := wait(func() bool { return counter.Load() > 0 }); err != nil {
		return figure{}, err
	}
	if warm := time.Now().Add(time.Second); counter.Load() < total/2 {
		if err := wait(func() bool { return time.Now().After(warm) || counter.Load() >= total/2 }); err != nil {
			return figure{}, err
		}
	}
	before, first, began := b.cpu(), counter.Load(), time.Now()
	if err := wait(func() bool { return time.Since(began) >= b.seconds || counter.Load() >= total }); err != nil {
		return figure{}, err
	}
	n := float64(counter.Load() - first)
	return figure{n / time.Since(began).Seconds(), (b.cpu() - before) / n * 1e6}, nil
}
