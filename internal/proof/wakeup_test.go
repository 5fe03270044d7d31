//go:build linux

package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/sbroker"
)

// lane is a service that answers, with a queue of its own, and somebody who asks it one question after the other: so a
// wake-up that is lost is not made good by the next message, and the answer never comes.
type lane struct {
	handle   sbroker.Handle
	home     sbroker.QueueName
	conn     *pgx.Conn
	listener *sbroker.Listener // which sleeps for the answer, and must not miss its own wake-up either
}

func (s *stage) lanes(n int) (lanes []*lane) {
	s.Helper()
	s.exec("create schema app")
	for i := range n {
		lanes = append(lanes, s.lane(i))
	}
	return lanes
}

func (s *stage) lane(i int) *lane {
	s.Helper()
	s.exec(fmt.Sprintf(`
create function app.lane_%[1]d() returns void language plpgsql as $$
declare
  m record;
begin
  for m in select r.* from sb.receive('lane_%[1]d') as r loop
    perform sb.send(m.conversation_handle, 'DEFAULT', m.message_body);
  end loop;
end $$;
select sb.create_queue('home_%[1]d'), sb.create_queue('lane_%[1]d', activation_procedure => 'app.lane_%[1]d', max_queue_readers => 2);
select sb.create_service(name, name, '{DEFAULT}') from unnest(array['home_%[1]d', 'lane_%[1]d']) as name`, i))
	config, err := pgx.ParseConfig(s.url(s.owner))
	if err != nil {
		s.Fatal(err)
	}
	l := &lane{home: sbroker.QueueName(fmt.Sprint("home_", i))}
	l.listener, err = sbroker.NewListener(sbroker.ListenerConfig{Connect: sbroker.ConnectTo(config), PollInterval: time.Hour})
	if err != nil {
		s.Fatal(err)
	}
	if l.conn, err = pgx.ConnectConfig(s.Context(), config); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = l.listener.Close(context.Background())
		closeConn(l.conn)
	})
	l.handle, err = sbroker.New(l.conn).BeginDialog(s.Context(), sbroker.Dialog{
		From: sbroker.ServiceName(l.home), To: sbroker.ServiceName(fmt.Sprint("lane_", i)),
	})
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// ask sends one message, commits it after a pause, and returns how long it then took until the answer was there.
func (l *lane) ask(ctx context.Context, pause time.Duration, question string) (took time.Duration, err error) {
	err = sbroker.RunTx(ctx, l.conn, func(ctx context.Context, b *sbroker.Broker) error {
		err := b.SendText(ctx, l.handle, sbroker.DefaultMessageType, question)
		time.Sleep(pause)
		return err
	})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	messages, err := l.listener.Receive(ctx, sbroker.New(l.conn), l.home, sbroker.ReceiveOptions{})
	if err == nil && (len(messages) != 1 || messages[0].Text() != question) {
		err = fmt.Errorf("asked %q, received %v", question, messages)
	}
	return time.Since(began), err
}

// gap is a random time of every size that matters: none, while readers are at it still, while they fall asleep, and when they
// sleep.
func gap() time.Duration {
	switch n := rand.IntN(100); {
	case n < 30:
		return 0
	case n < 80:
		return time.Duration(rand.ExpFloat64() * float64(3*time.Millisecond))
	case n < 96:
		return time.Duration(rand.IntN(60)) * time.Millisecond
	default:
		return time.Duration(rand.IntN(500)) * time.Millisecond
	}
}

// With two activators that poll once an hour, no wake-up is lost by messages sent at random gaps, some of whose transactions
// take their time to commit: in as many as fit into 20 s in the gate, in 100,000 in TestSoakWakeUps (make soak).
func TestNoWakeUpLost(t *testing.T) {
	t.Parallel()
	wakeUps(t, 20*time.Second, 300)
}

// TestSoakWakeUps is TestNoWakeUpLost for 100,000 messages, however long that takes.
func TestSoakWakeUps(t *testing.T) {
	soak(t)
	wakeUps(t, 0, 100_000)
}

// wakeUps sends as many messages as want, and more until d has passed.
func wakeUps(t *testing.T, d time.Duration, want int64) {
	s := newStage(t)
	lanes := s.lanes(6)
	for range 2 {
		s.start("SBACTIVATOR_ACTIVATION_POLL_INTERVAL=1h")
	}
	s.eventually("both listen", "select ("+listeners+") = 2")
	var (
		asked, answered atomic.Int64
		slowest         atomic.Int64
		group           sync.WaitGroup
		end             = time.Now().Add(d)
	)
	for _, l := range lanes {
		group.Go(func() {
			for n := asked.Add(1); (n <= want || time.Now().Before(end)) && !t.Failed(); n = asked.Add(1) {
				time.Sleep(gap())
				pause := time.Duration(0)
				if rand.IntN(4) == 0 {
					pause = time.Duration(rand.ExpFloat64() * float64(4*time.Millisecond))
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				took, err := l.ask(ctx, pause, fmt.Sprint(n))
				cancel()
				if err != nil {
					t.Errorf("message %d: a wake-up is lost, or worse: %v", n, err)
					return
				}
				answered.Add(1)
				slowest.Store(max(slowest.Load(), int64(took)))
			}
		})
	}
	group.Wait()
	t.Logf("%d messages, and as many answers; the slowest took %v", answered.Load(), time.Duration(slowest.Load()))
}

// When every notification is lost on its way, and nobody knows, everything is handled within the poll interval.
func TestNotificationsLost(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	network := newProxy(t, s.url(s.login))
	network.deaf.Store(true)
	lanes := s.lanes(4)
	const interval = time.Second
	start(t, network.url, "SBACTIVATOR_ACTIVATION_POLL_INTERVAL="+interval.String())
	s.eventually("it listens", "select ("+listeners+") = 1")
	var (
		group   sync.WaitGroup
		slowest atomic.Int64
	)
	for _, l := range lanes {
		group.Go(func() {
			for n := range 10 {
				time.Sleep(time.Duration(300+rand.IntN(300)) * time.Millisecond) // they sleep
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				took, err := l.ask(ctx, 0, fmt.Sprint(n))
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
				slowest.Store(max(slowest.Load(), int64(took)))
			}
		})
	}
	group.Wait()
	took := time.Duration(slowest.Load())
	t.Logf("the slowest of %d answers took %v", 10*len(lanes), took)
	// The interval varies by a fifth, and then there is the answer itself.
	if took > atMost(interval*12/10+300*time.Millisecond) {
		t.Errorf("an answer took %v", took)
	}
	if took < interval/5 {
		t.Error("notifications are not lost at all")
	}
}
