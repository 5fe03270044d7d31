package sbroker_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
	"github.com/pgsbroker/sbroker/sbroker/sbrokertest"
)

// waiting is one reader that waits in the background.
type waiting struct {
	listener *sbroker.Listener
	pair     *sbrokertest.Pair
	pool     *pgxpool.Pool
	result   chan error
	got      []sbroker.Message // to be read after result
}

// startWaiting waits for the target queue of a pair. The name of the application tells its session.
func startWaiting(t *testing.T, pool *pgxpool.Pool, pair *sbrokertest.Pair, poll time.Duration) *waiting {
	t.Helper()
	config := pool.Config().ConnConfig.Copy()
	config.RuntimeParams["application_name"] = "listener of " + t.Name()
	listener, err := sbroker.NewListener(sbroker.ListenerConfig{Connect: sbroker.ConnectTo(config), PollInterval: poll})
	if err != nil {
		t.Fatal(err)
	}
	w := &waiting{listener: listener, pair: pair, pool: pool, result: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		w.got, err = listener.Receive(ctx, sbroker.New(pool), pair.Target.Queue, sbroker.ReceiveOptions{})
		w.result <- err
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := listener.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// flags counts the waiting flags that are up in this database.
func flags(t *testing.T, db pgtest.Querier) int {
	t.Helper()
	return len(pgtest.Strings(t, db, `
select l.pid from pg_catalog.pg_locks as l join pg_catalog.pg_database as d on d.oid = l.database
where l.locktype = 'advisory' and l.classid = 8420 and l.mode = 'ShareLock' and l.objsubid = 2 and d.datname = current_database()`))
}

// asleep returns when the reader's flag is up and it has gone to its long sleep.
func (w *waiting) asleep(t *testing.T) {
	t.Helper()
	pgtest.Eventually(t, 10*time.Second, func() bool { return flags(t, w.pool) == 1 })
	// In the long sleep its session has been idle for longer than any short look.
	pgtest.Eventually(t, 10*time.Second, func() bool {
		return len(pgtest.Strings(t, w.pool, `
select from pg_catalog.pg_stat_activity
where application_name = $1 and state = 'idle' and state_change < clock_timestamp() - interval '1.3 s'
  and query like '%queue_messages%'`, "listener of "+t.Name())) == 1
	})
}

// woken checks that the reader got the one message, and soon.
func (w *waiting) woken(t *testing.T, body string) {
	t.Helper()
	if err := pgtest.Wait(t, w.result); err != nil {
		t.Fatal(err)
	}
	if len(w.got) != 1 || w.got[0].Text() != body {
		t.Errorf("received %v", w.got)
	}
	if n := flags(t, w.pool); n != 0 {
		t.Errorf("%d flags stay up", n)
	}
}

func send(t *testing.T, pair *sbrokertest.Pair, b *sbroker.Broker, body string) {
	t.Helper()
	h, err := b.BeginDialog(t.Context(), sbroker.Dialog{From: pair.Initiator.Service, To: pair.Target.Service})
	if err == nil {
		err = b.SendText(t.Context(), h, sbroker.DefaultMessageType, body)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestListenerIsWokenByNotification(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	w := startWaiting(t, pool, pair, time.Hour)
	w.asleep(t)
	send(t, pair, pair.Broker, "x")
	w.woken(t, "x")
}

// A sender that found nobody waiting commits long after the listener has begun to: no notification.
func TestListenerWaitsForSendersThatMissedTheFlag(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send(t, pair, pair.Broker.With(tx), "late")
	w := startWaiting(t, pool, pair, time.Hour)
	pgtest.Eventually(t, 10*time.Second, func() bool { return flags(t, pool) == 1 })
	select {
	case err := <-w.result:
		t.Fatalf("received %v, %v", w.got, err)
	case <-time.After(2 * time.Second): // beyond the time in which it looks often anyway
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.woken(t, "late")
}

// A rollback gives a message back and notifies nobody.
func TestListenerFindsWhatARollbackGivesBack(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	send(t, pair, pair.Broker, "back")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m, err := pair.Broker.With(tx).Receive(t.Context(), pair.Target.Queue, sbroker.ReceiveOptions{}); err != nil || len(m) != 1 {
		t.Fatalf("%v, %v", m, err)
	}
	w := startWaiting(t, pool, pair, time.Hour)
	pgtest.Eventually(t, 10*time.Second, func() bool { return flags(t, pool) == 1 })
	select {
	case err := <-w.result:
		t.Fatalf("received %v, %v", w.got, err)
	case <-time.After(2 * time.Second):
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.woken(t, "back")
}

// A message comes for a group that somebody holds: its notification leads to nothing, and the end of the
// holder's transaction brings none.
func TestListenerKeepsLookingWhileAGroupIsHeld(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	h := pair.BeginDialog(t)
	if err := pair.Broker.SendText(t.Context(), h, sbroker.DefaultMessageType, "first"); err != nil {
		t.Fatal(err)
	}
	target := sbrokertest.Drain(t, pair.Broker, pair.Target.Queue)[0].Conversation
	w := startWaiting(t, pool, pair, time.Hour)
	w.asleep(t)

	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Broker.With(holder).BeginTimer(t.Context(), target, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := pair.Broker.SendText(t.Context(), h, sbroker.DefaultMessageType, "held"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-w.result:
		t.Fatalf("received %v, %v", w.got, err)
	case <-time.After(time.Second):
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.woken(t, "held")
}

func TestListenerReconnects(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	w := startWaiting(t, pool, pair, time.Hour)
	w.asleep(t)
	killed := pgtest.Strings(t, pool, `
select pid, pg_catalog.pg_terminate_backend(pid, 5000) from pg_catalog.pg_stat_activity where application_name = $1`,
		"listener of "+t.Name())
	if len(killed) != 1 {
		t.Fatalf("killed %v", killed)
	}
	w.asleep(t) // on another connection
	send(t, pair, pair.Broker, "x")
	w.woken(t, "x")
}

// Without any notification everything still works.
func TestListenerPollsWhenItCannotListen(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	tries := 0
	listener, err := sbroker.NewListener(sbroker.ListenerConfig{
		Connect: func(context.Context) (*pgx.Conn, error) {
			if tries++; tries == 2 {
				send(t, pair, pair.Broker, "polled")
			}
			return nil, errors.New("no route to host")
		},
		PollInterval: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := listener.Receive(t.Context(), pair.Broker, pair.Target.Queue, sbroker.ReceiveOptions{})
	if err != nil || len(got) != 1 || got[0].Text() != "polled" {
		t.Errorf("received %v, %v", got, err)
	}
}

// Nothing tells of a timer that falls due, when no activator runs.
func TestListenerFindsTimersByPolling(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	listener, err := sbroker.NewListener(sbroker.ListenerConfig{
		Connect: sbroker.ConnectTo(pool.Config().ConnConfig), PollInterval: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close(context.Background())
	if err := pair.Broker.BeginTimer(t.Context(), pair.BeginDialog(t), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	got, err := listener.Receive(t.Context(), pair.Broker, pair.Initiator.Queue, sbroker.ReceiveOptions{})
	if err != nil || len(got) != 1 || got[0].Kind() != sbroker.KindDialogTimer {
		t.Errorf("received %v, %v", got, err)
	}
}

func TestListenerObeysItsContext(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	listener, err := sbroker.NewListener(sbroker.ListenerConfig{Connect: sbroker.ConnectTo(pool.Config().ConnConfig)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close(context.Background())
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := listener.Receive(ctx, pair.Broker, pair.Target.Queue, sbroker.ReceiveOptions{})
		result <- err
	}()
	pgtest.Eventually(t, 10*time.Second, func() bool { return flags(t, pool) == 1 })
	cancel()
	if err := pgtest.Wait(t, result); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := flags(t, pool); n != 0 {
		t.Errorf("%d flags stay up", n)
	}

	// It can be used again, for another queue, and tells what cannot succeed.
	send(t, pair, pair.Broker, "again")
	got, err := listener.Receive(t.Context(), pair.Broker, pair.Target.Queue, sbroker.ReceiveOptions{})
	if err != nil || len(got) != 1 {
		t.Errorf("again: %v, %v", got, err)
	}
	_, err = listener.Receive(t.Context(), pair.Broker, "no such queue", sbroker.ReceiveOptions{})
	if !errors.Is(err, sbroker.CodeQueueNotFound) {
		t.Errorf("unknown queue: %v", err)
	}
	err = listener.Wait(t.Context(), "no such queue", func(context.Context) (bool, error) { return false, nil })
	if !errors.Is(err, sbroker.CodeQueueNotFound) {
		t.Errorf("unknown queue to listen to: %v", err)
	}
}

// A queue that is switched off ends the wait with its error, as in SQL Server.
func TestListenerEndsWhenTheQueueIsDisabled(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	w := startWaiting(t, pool, pair, 300*time.Millisecond)
	pgtest.Eventually(t, 10*time.Second, func() bool { return flags(t, pool) == 1 })
	if err := pair.Broker.AlterQueue(t.Context(), pair.Target.Queue, sbroker.QueueChanges{Enabled: new(false)}); err != nil {
		t.Fatal(err)
	}
	if err := pgtest.Wait(t, w.result); !errors.Is(err, sbroker.CodeQueueDisabled) {
		t.Errorf("got %v", err)
	}
}

func TestListenerConfigIsValidated(t *testing.T) {
	t.Parallel()
	connect := func(context.Context) (*pgx.Conn, error) { return nil, nil }
	for _, config := range []sbroker.ListenerConfig{{}, {Connect: connect, PollInterval: -1}} {
		if _, err := sbroker.NewListener(config); err == nil {
			t.Errorf("%+v is accepted", config)
		}
	}
}

// While a handler works nobody is waiting, and what it does happens or does not.
func TestProcessIsOneTransaction(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	listener, err := sbroker.NewListener(sbroker.ListenerConfig{Connect: sbroker.ConnectTo(pool.Config().ConnConfig)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close(context.Background())
	errHandler := errors.New("handler")
	handle := func(result error) error {
		return listener.Process(t.Context(), pool, pair.Target.Queue, sbroker.ReceiveOptions{},
			func(ctx context.Context, b *sbroker.Broker, messages []sbroker.Message) error {
				if n := flags(t, pool); n != 0 {
					t.Errorf("%d flags are up while the handler works", n)
				}
				m := messages[0]
				if err := sbroker.StateOf[string](b).Set(ctx, m.Group, m.Text()); err != nil {
					return err
				}
				if err := b.SendText(ctx, m.Conversation, sbroker.DefaultMessageType, "reply"); err != nil {
					return err
				}
				return result
			})
	}
	result := make(chan error, 1)
	go func() { result <- handle(errHandler) }()
	pgtest.Eventually(t, 10*time.Second, func() bool { return flags(t, pool) == 1 })
	send(t, pair, pair.Broker, "request")
	if err := pgtest.Wait(t, result); !errors.Is(err, errHandler) {
		t.Fatalf("got %v", err)
	}
	if got := sbrokertest.Drain(t, pair.Broker, pair.Initiator.Queue); len(got) != 0 {
		t.Errorf("the reply of a failed handler arrived: %v", got)
	}
	if err := handle(nil); err != nil {
		t.Fatal(err)
	}
	if got := sbrokertest.Drain(t, pair.Broker, pair.Initiator.Queue); len(got) != 1 || got[0].Text() != "reply" {
		t.Errorf("received %v", got)
	}
}

// Many senders and readers that come and go, and handlers that fail: every message once, each dialog in
// its order, and no wake-up lost although nobody polls.
func TestProcessExactlyOnceInOrder(t *testing.T) {
	t.Parallel()
	const senders, dialogs, messages, readers = 4, 20, 25, 3
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	if _, err := pool.Exec(ctx, `
create table log (id bigint generated always as identity, dialog text not null, n integer not null)`); err != nil {
		t.Fatal(err)
	}
	err := pair.Broker.AlterQueue(ctx, pair.Target.Queue, sbroker.QueueChanges{PoisonMessageHandling: new(false)})
	if err != nil {
		t.Fatal(err)
	}
	errHandler := errors.New("now and then a handler fails")

	var committed atomic.Int64
	var working sync.WaitGroup
	for range readers {
		working.Go(func() {
			listener, err := sbroker.NewListener(sbroker.ListenerConfig{
				Connect: sbroker.ConnectTo(pool.Config().ConnConfig), PollInterval: time.Hour,
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer listener.Close(context.Background())
			for run := 1; ctx.Err() == nil; run++ {
				var taken int
				err := listener.Process(ctx, pool, pair.Target.Queue, sbroker.ReceiveOptions{Max: 7},
					func(ctx context.Context, b *sbroker.Broker, messages []sbroker.Message) error {
						for _, m := range messages {
							// The reader holds the group, so that the order of the ids is that of
							// processing.
							_, err := b.DB().Exec(ctx, `
insert into log (dialog, n) select v.dialog, v.n from jsonb_to_record($1::text::jsonb) as v (dialog text, n integer)`, m.Text())
							if err != nil {
								return err
							}
						}
						if taken = len(messages); run%9 == 0 {
							return errHandler
						}
						return nil
					})
				switch {
				case err == nil:
					if committed.Add(int64(taken)) == senders*dialogs*messages {
						stop()
					}
				case ctx.Err() == nil && !errors.Is(err, errHandler):
					t.Error(err)
					stop()
				}
			}
		})
	}
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for d := range dialogs {
				h, err := pair.Broker.BeginDialog(ctx, sbroker.Dialog{From: pair.Initiator.Service, To: pair.Target.Service})
				if err != nil {
					t.Error(err)
					return
				}
				for n := range messages {
					body := map[string]any{"dialog": fmt.Sprintf("%d.%02d", s, d), "n": n}
					if err := pair.Broker.SendJSON(ctx, h, sbroker.DefaultMessageType, body); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	sending.Wait()
	working.Wait()

	var order []string
	for n := range messages {
		order = append(order, strconv.Itoa(n))
	}
	var want []string
	for s := range senders {
		for d := range dialogs {
			want = append(want, fmt.Sprintf("%d.%02d|%s", s, d, strings.Join(order, ",")))
		}
	}
	got := pgtest.Strings(t, pool, `
select l.dialog, string_agg(l.n::text, ',' order by l.id) from log as l group by l.dialog order by l.dialog`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// To receive and to wait takes the right to receive and no other.
func TestListenerNeedsOnlyReceive(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pair := sbrokertest.NewPair(t, db.Pool(t), "")
	role := db.CreateRole(t, "reader")
	if err := pair.Broker.GrantReceive(t.Context(), pair.Target.Queue, role); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), db.URLAs(role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := startWaiting(t, pool, pair, time.Hour)
	w.asleep(t)
	send(t, pair, pair.Broker, "x")
	w.woken(t, "x")

	listener, err := sbroker.NewListener(sbroker.ListenerConfig{Connect: sbroker.ConnectTo(pool.Config().ConnConfig)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close(context.Background())
	err = listener.Wait(t.Context(), pair.Initiator.Queue, func(context.Context) (bool, error) { return false, nil })
	if !errors.Is(err, sbroker.CodeQueueNotFound) && !errors.Is(err, sbroker.CodeNoPermission) {
		t.Errorf("another queue: %v", err)
	}
}
