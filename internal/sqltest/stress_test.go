package sqltest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// stressTime is how long the two stress tests run.
const stressTime = 60 * time.Second

func repeat(n int, load func(w *worker)) []func(w *worker) {
	loads := make([]func(w *worker), n)
	for i := range loads {
		loads[i] = load
	}
	return loads
}

// Eight sessions with one verb in each transaction, and reader loops on both queues: nobody is ever a deadlock victim.
func TestStressOneVerb(t *testing.T) {
	t.Parallel()
	stressOneVerb(t, stressTime)
}

func stressOneVerb(t *testing.T, d time.Duration) {
	c := newChaos(t)
	c.run(d, append(repeat(8, oneVerb), outline(0), outline(1))...)
	c.finish()
}

// Eight sessions with free mixtures of verbs, savepoints and rollbacks: deadlocks are the application's own and
// retried, and all the same nothing is lost, doubled or left over.
func TestStressMixture(t *testing.T) {
	t.Parallel()
	stressMixture(t, stressTime)
}

func stressMixture(t *testing.T, d time.Duration) {
	c := newChaos(t)
	c.retries = true
	c.run(d, append(repeat(8, mixture), outline(0), outline(1))...)
	c.finish()
}

// The first receive of a session meets a group that another session holds, right after a search has set the start hint:
// the short way of receive has to give up in good order.
func TestFirstReceiveMeetsHeldGroup(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	a := c.owner("a")
	handle := a.Value("select sb.begin_dialog('Service0', 'Service1', 'Talk')")
	a.Exec("select sb.send($1::uuid, 'Note', 'one'::text), sb.send($1::uuid, 'Note', 'two'::text)", handle)
	a.Begin()
	wantRows(t, "holder", a.Query("select message_sequence_number from sb.receive('Queue1', 1)"), "0")
	for range 5 {
		b := c.owner("b")
		b.Exec("select sb.send($1::uuid, 'Note', 'more'::text)", handle)
		// The first of these searches everywhere, the others begin at the hint.
		for range 3 {
			wantRows(t, "beside it", b.Query("select message_sequence_number from sb.receive('Queue1', 1)"))
		}
	}
	// Also when the plans of the short way were made before.
	a.Commit()
	b := c.owner("b")
	wantRows(t, "free", b.Query("select message_sequence_number from sb.receive('Queue1', 1)"), "1")
	a.Begin()
	wantRows(t, "holder again", a.Query("select message_sequence_number from sb.receive('Queue1', 1)"), "2")
	wantRows(t, "beside it again", b.Query("select message_sequence_number from sb.receive('Queue1', 1)"))
}

// Queues are switched off and on, by hand and by poison handling, while both sides send and receive, and delivery runs in
// parallel: nothing is lost or overtaken, and in the end nothing waits.
func TestQueueToggles(t *testing.T) {
	t.Parallel()
	stressToggles(t, 20*time.Second)
}

func stressToggles(t *testing.T, d time.Duration) {
	c := newChaos(t)
	c.drops, c.mayBeOff = true, true
	c.owner("setup").Exec(`
select sb.alter_queue('Queue0', poison_message_handling => true), sb.alter_queue('Queue1', poison_message_handling => true);
select sb.set_option('poison_message_threshold', '3')`)
	handles := c.dialogsBetween(6)
	for _, handle := range handles {
		// Out of reach of the loads that end conversations.
		c.forget(handle)
		c.forget(c.peer(handle))
	}
	sender := func(w *worker) {
		w.transact(func(x *work) error {
			handle := handles[w.rnd.IntN(len(handles))]
			if w.chance(50) {
				handle = c.peer(handle)
			}
			if w.chance(30) {
				return x.sendBatch(handle, 1+w.rnd.IntN(5))
			}
			return x.send(handle)
		})
		time.Sleep(time.Duration(w.rnd.IntN(3)) * time.Millisecond)
	}
	reader := func(w *worker) {
		w.transact(func(x *work) error {
			if _, err := x.receive(w.rnd.IntN(2), []string{"", ", 1", ", 2", ", 5"}[w.rnd.IntN(4)]); err != nil {
				return err
			}
			if w.chance(30) {
				return errGiveUp
			}
			return nil
		})
	}
	toggler := func(w *worker) {
		w.transact(func(x *work) error {
			err := x.run("toggle", "select sb.alter_queue('Queue' || $1::integer, enabled => $2)", w.rnd.IntN(2), w.chance(60))
			if err == nil && w.chance(20) {
				time.Sleep(time.Duration(w.rnd.IntN(30)) * time.Millisecond)
			}
			return err
		})
		time.Sleep(time.Duration(w.rnd.IntN(120)) * time.Millisecond)
	}
	deliverer := func(w *worker) {
		w.transact(func(x *work) error {
			return x.run("deliver", []string{"select sb.deliver()", "select sb.deliver('Queue1')", "select sb.maintain()"}[w.rnd.IntN(3)])
		})
		time.Sleep(time.Duration(w.rnd.IntN(20)) * time.Millisecond)
	}
	// The last two begin, move, end and expire dialogs of their own beside those.
	c.run(d, sender, sender, sender, sender, reader, reader, reader, toggler, deliverer, deliverer, oneVerb, oneVerb)
	c.finish()
}

// Services that dialogs already send to are created late, while they send.
func TestLateServices(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	s := c.owner("setup")
	const services, senders, messages = 4, 4, 60
	for i := range services {
		handles := make([]string, senders)
		results := make([]<-chan error, senders)
		for j := range senders {
			handles[j] = s.Value("select sb.begin_dialog('Service0', $1::text, 'Talk')", fmt.Sprint("Late", i))
			sender := c.owner("sender")
			results[j] = sender.Go(func(ctx context.Context, conn *pgx.Conn) error {
				for n := range messages {
					if _, err := conn.Exec(ctx, "select sb.send($1::uuid, 'Note', $2::text)", handles[j], fmt.Sprint(n)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		time.Sleep(time.Duration(10+20*i) * time.Millisecond)
		s.Exec("select sb.create_service($1::text, 'Queue1', '{Talk}')", fmt.Sprint("Late", i))
		for _, result := range results {
			if err := wait(t, result); err != nil {
				t.Fatal(err)
			}
		}
		s.Exec("select sb.deliver()")
		wantRows(t, "transmission queue", s.Query("select * from sb.transmission_queue"))
		for _, handle := range handles {
			peer := s.Value("select peer_handle from sb_internal.endpoint where conversation_handle = $1::uuid", handle)
			got := s.Query("select message_sequence_number, sb.body_text(message_body) from sb.receive('Queue1', for_conversation => $1::uuid)", peer)
			if len(got) != messages {
				t.Errorf("service %d: %d messages", i, len(got))
			}
			for n, row := range got {
				if want := fmt.Sprintf("%d|%d", n, n); row != want {
					t.Errorf("service %d: got %s, want %s", i, row, want)
				}
			}
		}
	}
}

// A service goes back and forth between two queues under load, one verb in each transaction: no message and no timer is
// left behind in the queue that the service has left.
func TestAlterServiceUnderLoad(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	mover := func(w *worker) {
		w.transact(func(x *work) error {
			return x.run("alter", "select sb.alter_service('Service1', 'Queue' || $1::integer)", w.rnd.IntN(2))
		})
		time.Sleep(time.Duration(w.rnd.IntN(60)) * time.Millisecond)
	}
	c.run(10*time.Second, append(repeat(7, oneVerb), mover)...)
	s := c.owner("check")
	for _, table := range []string{"message", "due"} {
		wantRows(t, table+" in the wrong queue", s.Query(`
select x.* from sb_internal.`+table+` as x
  join sb_internal.endpoint as e using (conversation_handle)
  join sb_internal.service as s using (service_id)
 where s.queue_id <> x.queue_id`))
	}
	c.finish()
}

// The lock of SEND and what SEND looks at are two statements. Whoever waited for the lock must see what the one before him
// did: here in every state in which the first message may have left the conversation.
func TestSecondMessageDoesNotOvertake(t *testing.T) {
	t.Parallel()
	const first, second = "select sb.send($1::uuid, 'Note', 'first'::text)", "select sb.send($1::uuid, 'Note', 'second'::text)"
	for _, test := range []struct {
		name           string
		isOff          bool   // the queue when the first is sent
		between, after string // while the second waits; when both are sent
	}{
		{name: "on"},
		{name: "off and on", isOff: true, between: "select sb.alter_queue('Queue1', enabled => true)"},
		{name: "on and off", between: "select sb.alter_queue('Queue1', enabled => false)", after: "select sb.alter_queue('Queue1', enabled => true)"},
		{name: "off", isOff: true, after: "select sb.alter_queue('Queue1', enabled => true)"},
		{name: "delivery at the same time", isOff: true, between: "select sb.alter_queue('Queue1', enabled => true), sb.deliver()", after: "select sb.deliver()"},
	} {
		for _, isFresh := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, fresh %v", test.name, isFresh), func(t *testing.T) {
				t.Parallel()
				c := newChaos(t)
				s, one, two := c.owner("setup"), c.owner("one"), c.owner("two")
				handle := s.Value("select sb.begin_dialog('Service0', 'Service1', 'Talk')")
				sequence := 0
				if !isFresh {
					s.Exec("select sb.send($1::uuid, 'Note', 'zero'::text)", handle)
					s.Query("select from sb.receive('Queue1')")
					sequence = 1
				}
				if test.isOff {
					s.Exec("select sb.alter_queue('Queue1', enabled => false)")
				}
				one.Begin()
				one.Exec(first, handle)
				sent := two.GoExec(second, handle)
				pgtest.WaitBlocked(t, two, one)
				if test.between != "" {
					s.Exec(test.between)
				}
				one.Commit()
				if err := wait(t, sent); err != nil {
					t.Fatal(err)
				}
				if test.after != "" {
					s.Exec(test.after)
				}
				wantRows(t, "received", s.Query("select message_sequence_number, sb.body_text(message_body) from sb.receive('Queue1')"),
					fmt.Sprintf("%d|first", sequence), fmt.Sprintf("%d|second", sequence+1))
				wantRows(t, "transmission queue", s.Query("select * from sb.transmission_queue"))
			})
		}
	}
}

// Five readers that commit and one that always fails: the failures are not in a row, and the queue stays on. The failing
// one alone stops it at the fifth.
func TestPoisonRingManyReaders(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	s := c.owner("setup")
	s.Exec("select sb.alter_queue('Queue1', poison_message_handling => true)")
	const dialogs = 12
	for range dialogs {
		s.Exec("select sb.send(sb.begin_dialog('Service0', 'Service1', 'Talk'), 'Note', 'one'::text)")
	}
	handles := s.Query("select conversation_handle from sb.conversation_endpoints where is_initiator")
	var commits, failures atomic.Int64
	healthy := func(w *worker) {
		if w.transact(func(x *work) error {
			x.verb = "receive"
			var n int
			if err := x.tx.QueryRow(x.ctx, "select count(*) from sb.receive('Queue1', 1)").Scan(&n); err != nil {
				return err
			}
			if n == 0 {
				return errGiveUp
			}
			return nil
		}) {
			commits.Add(1)
		}
	}
	failing := func(w *worker) {
		w.transact(func(x *work) error {
			x.verb = "receive"
			var n int
			if err := x.tx.QueryRow(x.ctx, "select count(*) from sb.receive('Queue1', 1)").Scan(&n); err != nil {
				return err
			}
			if n > 0 {
				failures.Add(1)
			}
			return errGiveUp
		})
		// Six commits of five readers: at least one of them has received after this failure, and committed.
		for before := commits.Load(); commits.Load() < before+6 && time.Now().Before(c.deadline) && !t.Failed(); {
			time.Sleep(100 * time.Microsecond)
		}
	}
	sender := func(w *worker) {
		w.transact(func(x *work) error {
			return x.run("send", "select sb.send_batch($1::text::uuid, 'Note', array_fill('x'::bytea, array[20]))", handles[w.rnd.IntN(len(handles))])
		})
		time.Sleep(time.Millisecond)
	}
	c.run(8*time.Second, healthy, healthy, healthy, healthy, healthy, failing, sender, sender)
	if failures.Load() < 20 {
		t.Errorf("only %d failures", failures.Load())
	}
	wantRows(t, "on", s.Query("select is_receive_enabled from sb.service_queues where name = 'Queue1'"), "t")
	if t.Failed() {
		return
	}

	fail := func() {
		s.Begin()
		if rows := s.Query("select from sb.receive('Queue1', 1)"); len(rows) != 1 {
			t.Errorf("received %d", len(rows))
		}
		s.Rollback()
	}
	s.Exec("select sb.send_batch($1::uuid, 'Note', array_fill('x'::bytea, array[50]))", handles[0])
	s.Exec("select from sb.receive('Queue1', 1)")
	for range 4 {
		fail()
	}
	wantRows(t, "after four", s.Query("select is_receive_enabled from sb.service_queues where name = 'Queue1'"), "t")
	s.Exec("select from sb.receive('Queue1', 1)")
	for range 4 {
		fail()
	}
	wantRows(t, "after a commit and four", s.Query("select is_receive_enabled from sb.service_queues where name = 'Queue1'"), "t")
	fail()
	wantRows(t, "after five", s.Query("select is_receive_enabled from sb.service_queues where name = 'Queue1'"), "f")
	wantRows(t, "nothing comes", s.Query("select from sb.receive('Queue1', 1)"))
	s.ExecError("S9617", "select from sb.receive('Queue1', 1)")
}
