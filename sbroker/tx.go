package sbroker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Beginner begins transactions: *pgxpool.Pool and *pgx.Conn.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

const (
	txAttempts = 10
	txBackoff  = 10 * time.Millisecond
	txMaxPause = time.Second
)

// RunTx runs fn in a transaction of its own and commits it when fn returns nil. When fn returns an error or
// panics it rolls back, in a detached context with a short timeout when ctx has ended. Errors for which
// IsRetryable holds, of fn, of the commit or of a connection lost below fn, make it begin again after a
// pause that grows and jitters, ten times at most; so fn must be able to run more than once. Outside
// effects belong after RunTx.
//
// An error wraps ErrCommitUnknown when the connection broke during COMMIT: that is never retried,
// because the transaction may have happened.
//
// Every rolled-back transaction that had received messages counts for the queue's poison limit.
func RunTx(ctx context.Context, db Beginner, fn func(ctx context.Context, b *Broker) error) error {
	pause := txBackoff
	for attempt := 1; ; attempt++ {
		err := runTxOnce(ctx, db, fn)
		if err == nil || attempt == txAttempts || !IsRetryable(err) {
			return err
		}
		if !sleep(ctx, jitter(pause)) {
			return opError("retry", errors.Join(ctx.Err(), err))
		}
		pause = min(2*pause, txMaxPause)
	}
}

func runTxOnce(ctx context.Context, db Beginner, fn func(ctx context.Context, b *Broker) error) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return opError("begin", err)
	}
	// Also on panic; after a commit it does nothing.
	defer func() {
		detached, cancel := cleanup(ctx)
		defer cancel()
		_ = tx.Rollback(detached) // a connection that cannot roll back is closed by pgx, which rolls back
	}()
	if err := fn(ctx, New(tx)); err != nil {
		if tx.Conn().IsClosed() {
			// The cause may be a bare network error from the caller's own statements.
			return fmt.Errorf("%w: %w", pgconn.ErrConnClosed, err)
		}
		return err
	}
	return commit(ctx, tx)
}

func commit(ctx context.Context, tx pgx.Tx) error {
	err := tx.Commit(ctx)
	if err == nil {
		return nil
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.SeverityUnlocalized == "ERROR" {
		return opError("commit", err) // the server refused and rolled back
	}
	if errors.Is(err, pgx.ErrTxCommitRollback) || errors.Is(err, pgx.ErrTxClosed) || pgconn.SafeToRetry(err) {
		return opError("commit", err) // rolled back because a statement had failed, or never sent
	}
	return opError("commit", fmt.Errorf("%w: %w", ErrCommitUnknown, err))
}

// sleep waits for d and reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter spreads d over ±20 %, so that those who failed or polled together do not do so again.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}
