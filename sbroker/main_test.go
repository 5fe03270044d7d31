package sbroker_test

import (
	"context"
	"log"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// exampleTB lets pgtest serve an Example, which has no testing.T: what it does not implement panics.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper()                           {}
func (*exampleTB) Context() context.Context          { return context.Background() }
func (e *exampleTB) Cleanup(fn func())               { e.cleanups = append(e.cleanups, fn) }
func (*exampleTB) Errorf(format string, args ...any) { log.Panicf(format, args...) }
func (*exampleTB) Fatal(args ...any)                 { log.Panic(args...) }
func (*exampleTB) Skip(args ...any)                  { log.Panic(args...) }

// database opens a database of its own for one example, with services named so, each with a queue of
// the same name and accepting the DEFAULT contract.
func database(services ...string) (pool *pgxpool.Pool, done func()) {
	tb := &exampleTB{}
	pool = pgtest.New(tb).Pool(tb)
	createServices(pool, services...)
	return pool, func() {
		for len(tb.cleanups) > 0 { // last in, first out, as testing does
			last := len(tb.cleanups) - 1
			fn := tb.cleanups[last]
			tb.cleanups = tb.cleanups[:last]
			fn()
		}
	}
}

func createServices(db sbroker.DBTX, names ...string) {
	b, ctx := sbroker.New(db), context.Background()
	for _, name := range names {
		check(b.CreateQueue(ctx, sbroker.Queue{Name: sbroker.QueueName(name)}))
		check(b.CreateService(ctx, sbroker.Service{
			Name:      sbroker.ServiceName(name),
			Queue:     sbroker.QueueName(name),
			Contracts: []sbroker.ContractName{sbroker.DefaultContract},
		}))
	}
}

// must and check keep the examples short.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func must2[T, U any](v T, u U, err error) (T, U) {
	check(err)
	return v, u
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
