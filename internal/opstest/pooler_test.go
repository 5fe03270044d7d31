//go:build unix

package opstest

import (
	"context"
	"errors"
	"fmt"
	osexec "os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
)

// More clients than connections, whose statements go now here, now there, in every mode of pgx that leaves no prepared
// statement behind in a session.
func TestPooler(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]pgx.QueryExecMode{
		"exec": pgx.QueryExecModeExec, "simple protocol": pgx.QueryExecModeSimpleProtocol, "cache describe": pgx.QueryExecModeCacheDescribe,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			url := pgtest.Pooler(t, db.URL(), 3)
			modify := func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode }
			l := newLoad(t, 8, db.URL())
			l.url.Store(&url)
			l.modify = modify
			l.run(4, 5)
			l.await(200)
			talkThroughPooler(t, db, url, modify)
			direct := db.URL()
			l.url.Store(&direct)
			l.finish()
		})
	}
}

// talkThroughPooler has a whole conversation through the pooler by the client; only the listener goes straight.
func talkThroughPooler(t *testing.T, db *pgtest.DB, url string, modify func(*pgx.ConnConfig)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	modify(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	b := sbroker.New(pool)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const takeReader = "select sb.take_reader(q.queue_id, 1) from sb.service_queues as q where q.name = 'Desk'"
	must(b.CreateQueue(ctx, sbroker.Queue{Name: "Desk"}))
	must(b.CreateService(ctx, sbroker.Service{Name: "Clerk", Queue: "Desk", Contracts: []sbroker.ContractName{"DEFAULT"}}))
	direct, err := pgx.ParseConfig(db.URL())
	must(err)
	listener, err := sbroker.NewListener(sbroker.ListenerConfig{Connect: sbroker.ConnectTo(direct)})
	must(err)
	defer listener.Close(ctx)

	// A listener sleeps until somebody sends through the pooler.
	received := make(chan error, 1)
	go func() {
		messages, err := listener.Receive(ctx, b, "Desk", sbroker.ReceiveOptions{})
		if err == nil && (len(messages) != 1 || messages[0].Text() != "one") {
			err = fmt.Errorf("received %v", messages)
		}
		received <- err
	}()
	watcher := db.Conn(t)
	pgtest.Eventually(t, 30*time.Second, func() bool {
		return len(pgtest.Strings(t, watcher, "select 1 from pg_locks where locktype = 'advisory' and classid = 8420")) > 0
	})
	var h sbroker.Handle
	must(sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		if h, err = b.BeginDialog(ctx, sbroker.Dialog{From: "Clerk", To: "Clerk"}); err != nil {
			return err
		}
		return b.SendText(ctx, h, "DEFAULT", "one")
	}))
	must(<-received)

	must(b.SendBatch(ctx, h, "DEFAULT", [][]byte{[]byte("two"), []byte("three")}))
	must(b.Multicast(ctx, []sbroker.Handle{h}, "DEFAULT", []byte("four")))
	must(sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		messages, err := b.Receive(ctx, "Desk", sbroker.ReceiveOptions{})
		if err != nil {
			return err
		}
		if len(messages) != 3 {
			return fmt.Errorf("received %d", len(messages))
		}
		// A reader's slot of the transaction, as activators take it.
		var first, second bool
		if err = b.DB().QueryRow(ctx, takeReader).Scan(&first); err == nil {
			err = pool.QueryRow(ctx, takeReader).Scan(&second)
		}
		if err != nil || !first || second {
			return fmt.Errorf("slots: %v %v %w", first, second, err)
		}
		return b.End(ctx, messages[0].Conversation)
	}))
	var free bool
	must(pool.QueryRow(ctx, takeReader).Scan(&free))
	if !free {
		t.Error("the slot outlived its transaction")
	}
	must(b.BeginTimer(ctx, h, time.Millisecond))
	pgtest.Eventually(t, 30*time.Second, func() bool {
		messages, err := b.Receive(ctx, "Desk", sbroker.ReceiveOptions{})
		must(err)
		return len(messages) > 0
	})
	must(b.EndCleanup(ctx, h))
	must(b.Maintain(ctx))
	if _, err := b.Deliver(ctx, ""); err != nil {
		t.Error(err)
	}
	// Errors keep their names.
	if err := b.End(ctx, h); !errors.Is(err, sbroker.CodeConversationNotFound) {
		t.Errorf("end twice: %v", err)
	}
}

// Prepared statements, which pgx uses unless told otherwise, need a PgBouncer that knows them.
func TestPoolerAndPreparedStatements(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	url := pgtest.Pooler(t, db.URL(), 2)
	l := newLoad(t, 4, db.URL())
	if !knowsPreparedStatements(t) {
		// It does not go unnoticed: what was prepared on one connection is looked for on the other.
		first, second := connect(t, url), connect(t, url)
		exec(t, first, "select $1::text", "prepared")
		exec(t, second, "begin")
		_, err := first.Exec(t.Context(), "select $1::text", "elsewhere")
		if code := pgtest.SQLState(err); code != "26000" {
			t.Errorf("got %v, want 26000", err)
		}
		return
	}
	l.url.Store(&url)
	l.run(3, 3)
	l.await(100)
	direct := db.URL()
	l.url.Store(&direct)
	l.finish()
}

func knowsPreparedStatements(t *testing.T) bool {
	t.Helper()
	out, err := osexec.Command("pgbouncer", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	// "PgBouncer 1.24.0"; since 1.21, and on by default since 1.24.
	fields := strings.Split(strings.Fields(string(out))[1], ".")
	minor, _ := strconv.Atoi(fields[1])
	return fields[0] != "1" || minor >= 24
}
