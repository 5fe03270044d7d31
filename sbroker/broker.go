package sbroker

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DBTX is what the package needs of a database: *pgx.Conn, *pgxpool.Pool and pgx.Tx have it.
type DBTX interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Broker calls the verbs of sb through a connection, a pool or a transaction. It has no state of its
// own and is as safe for concurrent use as what it calls through.
type Broker struct {
	db DBTX
}

// New returns a Broker that calls through db.
func New(db DBTX) *Broker { return &Broker{db: db} }

// With returns a Broker that does the same through tx.
func (b *Broker) With(tx DBTX) *Broker { return &Broker{db: tx} }

// DB returns what the Broker calls through: in RunTx, the transaction, for the caller's own statements.
func (b *Broker) DB() DBTX { return b.db }

// args names the parameters of a constant statement. Each one is cast in the statement, so that it
// means the same in every query execution mode of pgx. The strict form reports a misspelt name.
type args = pgx.StrictNamedArgs

// exec calls a verb that returns nothing.
func (b *Broker) exec(ctx context.Context, op, sql string, a args) error {
	_, err := b.db.Exec(ctx, sql, a)
	return opError(op, err)
}

// value calls a verb that returns one value.
func value[T any](ctx context.Context, b *Broker, op, sql string, a args) (v T, err error) {
	err = b.db.QueryRow(ctx, sql, a).Scan(&v)
	return v, opError(op, err)
}

// orNull makes the zero value of an optional argument NULL.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// texts makes a text[] of names; nil becomes an empty array, which is what the verbs expect.
func texts[T ~string](names []T) []string {
	s := make([]string, len(names))
	for i, name := range names {
		s[i] = string(name)
	}
	return s
}

// cleanupTimeout bounds what must still be said to the server after the caller's context has ended.
const cleanupTimeout = 5 * time.Second

// cleanup returns a context that outlives ctx for a moment.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}
