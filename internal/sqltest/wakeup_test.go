package sqltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// Waiters follow the protocol of the waiting flag and then sleep without any limit, until they are notified. Senders send at
// random moments, in transactions that stay open or are rolled back now and then. No message stays where it is for long.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	for waiters := 1; waiters <= 3; waiters++ {
		t.Run(fmt.Sprintf("%d waiters", waiters), func(t *testing.T) {
			t.Parallel()
			stressWakeUps(t, waiters, 8*time.Second)
		})
	}
}

// sleeper waits for Queue1.
type sleeper struct {
	conn     *pgx.Conn
	received *atomic.Int64
	sleeps   *atomic.Int64
	rnd      *rand.Rand
}

// look receives one message in a transaction and reports whether there was one.
func (s *sleeper) look(ctx context.Context) (bool, error) {
	tx, err := s.conn.Begin(ctx)
	if err != nil {
		return false, err
	}
	var n int
	if err := tx.QueryRow(ctx, "select count(*) from sb.receive('Queue1', 1)").Scan(&n); err != nil {
		return false, err
	}
	if n > 0 && s.rnd.IntN(20) == 0 {
		return true, tx.Rollback(ctx)
	}
	if err := tx.Commit(ctx); err != nil {
		return false, err
	}
	s.received.Add(int64(n))
	return n > 0, nil
}

// run is the waiter of design.md §7: raise the flag, look, go on looking until every transaction that may have missed the
// flag has ended, and sleep for good only if there is no message at all, locked ones included.
func (s *sleeper) run(ctx context.Context) error {
	var channel string
	if err := s.conn.QueryRow(ctx, "select 'sb_queue_' || queue_id from sb.service_queues where name = 'Queue1'").Scan(&channel); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, "listen "+channel); err != nil {
		return err
	}
	for ctx.Err() == nil {
		found, err := s.look(ctx)
		if err != nil {
			return err
		}
		if found {
			continue
		}
		if _, err := s.conn.Exec(ctx, "select sb.start_waiting('Queue1')"); err != nil {
			return err
		}
		// A transaction that looked for the flag before it was raised had written its message by then.
		var fence []string
		if err := s.conn.QueryRow(ctx, "select sb.queue_writers()").Scan(&fence); err != nil {
			return err
		}
		for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
			var isAlone, isEmpty bool
			if err := s.conn.QueryRow(ctx, "select not sb.queue_writers() && $1::text[]", fence).Scan(&isAlone); err != nil {
				return err
			}
			if found, err = s.look(ctx); err != nil {
				return err
			}
			if found {
				break
			}
			if err := s.conn.QueryRow(ctx, "select not exists (select from sb_internal.message as m join sb_internal.endpoint as e using (conversation_handle))").
				Scan(&isEmpty); err != nil {
				return err
			}
			if isAlone && isEmpty {
				s.sleeps.Add(1)
				if _, err := s.conn.WaitForNotification(ctx); err != nil {
					return err
				}
				break
			}
			time.Sleep(pause)
		}
		if _, err := s.conn.Exec(ctx, "select sb.stop_waiting('Queue1')"); err != nil {
			return err
		}
	}
	return nil
}

func stressWakeUps(t *testing.T, waiters int, d time.Duration) {
	c := newChaos(t)
	handles := c.dialogsBetween(4)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var received, sent, sleeps atomic.Int64
	var wg sync.WaitGroup
	for i := range waiters {
		s := &sleeper{conn: c.db.Conn(t), received: &received, sleeps: &sleeps, rnd: rand.New(rand.NewPCG(c.seed, uint64(i)))}
		wg.Go(func() {
			if err := s.run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("waiter: %v", err)
			}
		})
	}
	drained := func() bool { return received.Load() == sent.Load() }
	proves := func() bool { return sleeps.Load() >= 20 && sent.Load() >= 100 }
	var senders sync.WaitGroup
	var gate sync.RWMutex
	// A busy machine gets its time.
	deadline, latest := time.Now().Add(d), time.Now().Add(d+2*time.Minute)
	goesOn := func() bool {
		now := time.Now()
		return !t.Failed() && (now.Before(deadline) || !proves() && now.Before(latest))
	}
	for i := range 3 {
		conn := c.db.Conn(t)
		rnd := rand.New(rand.NewPCG(c.seed, 100+uint64(i)))
		senders.Go(func() {
			for goesOn() {
				gate.RLock()
				err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
					if _, err := tx.Exec(ctx, "select sb.send($1::uuid, 'Note', 'x'::text)", handles[rnd.IntN(len(handles))]); err != nil {
						return err
					}
					if rnd.IntN(4) == 0 {
						time.Sleep(time.Duration(rnd.IntN(5000)) * time.Microsecond)
					}
					if rnd.IntN(10) == 0 {
						return errGiveUp
					}
					return nil
				})
				if err == nil {
					sent.Add(1)
				} else if !errors.Is(err, errGiveUp) {
					t.Errorf("sender: %v", err)
				}
				gate.RUnlock()
				time.Sleep(time.Duration(rnd.IntN(1+1<<rnd.IntN(13))) * time.Microsecond)
			}
		})
	}
	rnd := rand.New(rand.NewPCG(c.seed, 200))
	// Now and then all senders stop until everything is received: without a further message nobody is woken by luck.
	for goesOn() {
		time.Sleep(30 * time.Millisecond)
		gate.Lock()
		if !within(time.Minute, drained) {
			t.Errorf("seed %d: %d sent, %d received, and nobody wakes up", c.seed, sent.Load(), received.Load())
		}
		// Long enough for the waiters to fall asleep.
		time.Sleep(time.Duration(20+rnd.IntN(40)) * time.Millisecond)
		gate.Unlock()
	}
	senders.Wait()
	if !t.Failed() && !within(time.Minute, drained) {
		t.Errorf("seed %d: %d sent, %d received at the end", c.seed, sent.Load(), received.Load())
	}
	cancel()
	wg.Wait()
	t.Logf("%d messages, %d sleeps", sent.Load(), sleeps.Load())
	if !proves() {
		t.Errorf("%d messages, %d sleeps: too few to prove anything", sent.Load(), sleeps.Load())
	}
}

// within reports whether cond becomes true in time.
func within(d time.Duration, cond func() bool) bool {
	for deadline := time.Now().Add(d); !cond(); {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// A sender notifies when somebody waits, and does not when nobody does.
func TestNotifyOnlyWhenSomebodyWaits(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	handle := c.dialogsBetween(1)[0]
	sender, waiter, other := c.owner("sender"), c.owner("waiter"), c.owner("other")
	channel := sender.Value("select 'sb_queue_' || queue_id from sb.service_queues where name = 'Queue1'")
	waiter.Exec("listen " + channel)
	notified := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		n, err := waiter.Conn.WaitForNotification(ctx)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		return n != nil
	}
	for _, step := range []struct {
		what string
		do   func()
		want bool
	}{
		{"nobody waits", func() {}, false},
		{"the waiter waits", func() { waiter.Exec("select sb.start_waiting('Queue1')") }, true},
		{"another one too", func() { other.Exec("select sb.start_waiting('Queue1')") }, true},
		{"only the other one", func() { waiter.Exec("select sb.stop_waiting('Queue1')") }, true},
		{"nobody any more", func() { other.Exec("select sb.stop_waiting('Queue1')") }, false},
		{"for another queue", func() { waiter.Exec("select sb.start_waiting('Queue0')") }, false},
	} {
		step.do()
		sender.Exec("select sb.send($1::uuid, 'Note', 'x'::text)", handle)
		if got := notified(); got != step.want {
			t.Errorf("%s: notified %v", step.what, got)
		}
		if locks := sender.Query("select mode from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'"); len(locks) > 0 {
			t.Errorf("%s: the sender keeps %v", step.what, locks)
		}
	}
	// The flag dies with the session.
	gone := c.owner("gone")
	gone.Exec("select sb.start_waiting('Queue1')")
	if err := gone.Conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 10*time.Second, func() bool {
		return sender.Value("select count(*) from pg_locks where locktype = 'advisory' and classid = 8420 and objid::text = split_part($1::text, '_', 3) and database = (select oid from pg_database where datname = current_database())", channel) == "0"
	})
	sender.Exec("select sb.send($1::uuid, 'Note', 'x'::text)", handle)
	if notified() {
		t.Error("notified though the one who waited is gone")
	}
}
