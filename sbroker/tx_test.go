package sbroker_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
	"github.com/pgsbroker/sbroker/sbroker/sbrokertest"
)

func TestRunTxRetriesFromTheBeginning(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	tries := map[string]func(ctx context.Context, b *sbroker.Broker) error{
		"serialization failure": func(ctx context.Context, b *sbroker.Broker) error {
			_, err := b.DB().Exec(ctx, `do $$ begin raise exception using errcode = '40001'; end $$`)
			return err
		},
		"killed session": func(ctx context.Context, b *sbroker.Broker) error {
			_, err := b.DB().Exec(ctx, `select pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())`)
			return err
		},
		"cut connection": func(ctx context.Context, b *sbroker.Broker) error {
			tx, ok := b.DB().(pgx.Tx)
			if !ok {
				t.Fatal("DB is no transaction")
			}
			if err := tx.Conn().PgConn().Conn().Close(); err != nil {
				t.Error(err)
			}
			_, err := b.DB().Exec(ctx, `select 1`)
			return err // a bare network error
		},
	}
	for name, fail := range tries {
		t.Run(name, func(t *testing.T) {
			runs := 0
			err := sbroker.RunTx(t.Context(), pool, func(ctx context.Context, b *sbroker.Broker) error {
				runs++
				h, err := b.BeginDialog(ctx, sbroker.Dialog{From: pair.Initiator.Service, To: pair.Target.Service})
				if err != nil {
					return err
				}
				if err := b.SendText(ctx, h, sbroker.DefaultMessageType, name); err != nil {
					return err
				}
				if runs == 1 {
					return fail(ctx, b)
				}
				return nil
			})
			if err != nil || runs != 2 {
				t.Errorf("%d runs, %v", runs, err)
			}
			if got := sbrokertest.Drain(t, pair.Broker, pair.Target.Queue); len(got) != 1 {
				t.Errorf("%d messages arrived", len(got))
			}
		})
	}
}

// Two transactions that lock each other's rows: the victim runs again, both succeed.
func TestRunTxSurvivesDeadlocks(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	ctx := t.Context()
	if _, err := pool.Exec(ctx, `
create table account (id integer primary key, balance integer not null);
insert into account values (1, 0), (2, 0)`); err != nil {
		t.Fatal(err)
	}
	met, runs := make(chan struct{}, 2), make(chan struct{}, 10)
	transfer := func(from, to int) <-chan error {
		result := make(chan error, 1)
		go func() {
			first := true
			result <- sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
				runs <- struct{}{}
				const add = `update account set balance = balance + 1 where id = $1`
				if _, err := b.DB().Exec(ctx, add, from); err != nil {
					return err
				}
				if first { // each holds one row before either asks for the other
					first = false
					met <- struct{}{}
					for len(met) < 2 {
						if _, err := b.DB().Exec(ctx, `select`); err != nil {
							return err
						}
					}
				}
				_, err := b.DB().Exec(ctx, add, to)
				return err
			})
		}()
		return result
	}
	a, b := transfer(1, 2), transfer(2, 1)
	if err := errors.Join(pgtest.Wait(t, a), pgtest.Wait(t, b)); err != nil {
		t.Fatal(err)
	}
	if len(runs) < 3 {
		t.Errorf("%d runs: there was no deadlock", len(runs))
	}
	if got := pgtest.Strings(t, pool, `select balance from account order by id`); got[0] != "2" || got[1] != "2" {
		t.Errorf("balances %v", got)
	}
}

func TestRunTxRollsBack(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	h := pair.BeginDialog(t)
	if err := pair.Broker.SendText(t.Context(), h, sbroker.DefaultMessageType, "x"); err != nil {
		t.Fatal(err)
	}
	errHandler := errors.New("handler")
	receive := func(ctx context.Context, b *sbroker.Broker) {
		messages, err := b.Receive(ctx, pair.Target.Queue, sbroker.ReceiveOptions{})
		if err != nil || len(messages) != 1 {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
	}

	runs := 0
	err := sbroker.RunTx(t.Context(), pool, func(ctx context.Context, b *sbroker.Broker) error {
		runs++
		receive(ctx, b)
		return errHandler
	})
	if !errors.Is(err, errHandler) || runs != 1 {
		t.Errorf("error: %d runs, %v", runs, err)
	}

	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic got lost")
			}
		}()
		_ = sbroker.RunTx(t.Context(), pool, func(ctx context.Context, b *sbroker.Broker) error {
			receive(ctx, b)
			panic("handler")
		})
	}()

	ctx, cancel := context.WithCancel(t.Context())
	err = sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		receive(ctx, b)
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, sbroker.ErrCommitUnknown) {
		t.Errorf("cancelled: %v", err)
	}

	// A statement error that fn hides must not look like success.
	err = sbroker.RunTx(t.Context(), pool, func(ctx context.Context, b *sbroker.Broker) error {
		receive(ctx, b)
		_ = b.SendEmpty(ctx, sbroker.Handle{9}, "x")
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("hidden error: %v", err)
	}

	if got := sbrokertest.Drain(t, pair.Broker, pair.Target.Queue); len(got) != 1 {
		t.Errorf("%d messages are left, want 1", len(got))
	}
}

// losing is a database whose connection breaks while COMMIT is under way.
type losing struct {
	sbroker.Beginner
	err error
}

type losingTx struct {
	pgx.Tx
	err error
}

func (l losing) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := l.Beginner.Begin(ctx)
	return losingTx{Tx: tx, err: l.err}, err
}

func (l losingTx) Commit(context.Context) error { return l.err }

func TestRunTxDoesNotRepeatAnUnknownCommit(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	tests := map[string]struct {
		err     error
		unknown bool
	}{
		"lost connection": {io.ErrUnexpectedEOF, true},
		"shutdown":        {&pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01"}, true},
		"deadline":        {context.DeadlineExceeded, true},
		"refused":         {&pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "23503"}, false},
	}
	for name, tt := range tests {
		runs := 0
		err := sbroker.RunTx(t.Context(), losing{pool, tt.err}, func(context.Context, *sbroker.Broker) error {
			runs++
			return nil
		})
		if runs != 1 || errors.Is(err, sbroker.ErrCommitUnknown) != tt.unknown || !errors.Is(err, tt.err) {
			t.Errorf("%s: %d runs, %v", name, runs, err)
		}
	}

	runs := 0
	deferred := &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "40001"}
	err := sbroker.RunTx(t.Context(), losing{pool, deferred}, func(context.Context, *sbroker.Broker) error {
		runs++
		return nil
	})
	if runs != 10 || !errors.Is(err, sbroker.CodeSerializationFailure) {
		t.Errorf("serialization failure at commit: %d runs, %v", runs, err)
	}
}

func TestRunTxStopsPausingWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	ctx, cancel := context.WithCancel(t.Context())
	deadlock := &pgconn.PgError{Code: "40P01"}
	err := sbroker.RunTx(ctx, pool, func(context.Context, *sbroker.Broker) error {
		cancel()
		return deadlock
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, deadlock) {
		t.Errorf("got %v", err)
	}
}
