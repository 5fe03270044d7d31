package activator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
)

// tally counts what handlers have seen, by body; only of transactions that are about to commit.
type tally struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *tally) add(bodies ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	for _, b := range bodies {
		c.seen[b]++
	}
}

func (c *tally) count(body string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[body]
}

func (c *tally) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.seen {
		n += k
	}
	return n
}

// handle ends every dialog after its first message.
func (c *tally) handle(ctx context.Context, b *activator.Batch) error {
	for _, m := range b.Messages {
		if err := b.Broker.End(ctx, m.Conversation); err != nil {
			return err
		}
		c.add(m.Text())
	}
	return nil
}

// Receive, state, sends and the handler's own statements are one transaction.
func TestGoHandler(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec(`create table public.orders (item text)`)
	s.exec(fmt.Sprintf(`grant insert on public.orders to %s`, s.role))
	type state struct{ Seen int }
	var failed atomic.Bool
	s.start(s.config(), func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			st := activator.StateOf[state](b)
			current, _, err := st.Get(ctx)
			if err != nil {
				return err
			}
			for _, m := range b.Messages {
				current.Seen++
				if _, err := b.Tx.Exec(ctx, `insert into public.orders (item) values ($1)`, m.Text()); err != nil {
					return err
				}
				reply := fmt.Sprintf("%s is no. %d of %s", m.Text(), current.Seen, b.Queue)
				if err := b.Broker.SendText(ctx, m.Conversation, sbroker.DefaultMessageType, reply); err != nil {
					return err
				}
			}
			if err := st.Set(ctx, current); err != nil {
				return err
			}
			if current.Seen >= 3 && !failed.Swap(true) {
				return errors.New("everything above is undone")
			}
			return nil
		}, activator.HandlerOptions{Batch: 1})
	})
	h := s.send("a", "b", "c", "d")
	var got []string
	s.eventually("four answers", func() bool {
		messages, err := s.b.Receive(t.Context(), "client", sbroker.ReceiveOptions{Conversation: h})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			got = append(got, m.Text())
		}
		return len(got) >= 4
	})
	want := []string{"a is no. 1 of server", "b is no. 2 of server", "c is no. 3 of server", "d is no. 4 of server"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	orders := pgtest.Strings(t, s.pool, `select item from public.orders order by 1`)
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, orders); diff != "" {
		t.Error(diff)
	}
}

// Batches are of one group, in order, and no larger than asked for.
func TestBatches(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	handles := make([]sbroker.Handle, 5)
	for i := range handles {
		handles[i] = s.send("0", "1", "2", "3", "4", "5", "6")
	}
	type batch struct {
		group  sbroker.GroupID
		bodies string
	}
	var (
		mu  sync.Mutex
		got []batch
	)
	s.start(s.config(), func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			bodies := ""
			for _, m := range b.Messages {
				if m.Group != b.Group {
					t.Errorf("message of group %v in a batch of %v", m.Group, b.Group)
				}
				bodies += m.Text()
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, batch{b.Group, bodies})
			return nil
		}, activator.HandlerOptions{Batch: 3})
	})
	s.idle("server")
	s.eventually("15 batches", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == 15 })
	byGroup := map[sbroker.GroupID][]string{}
	for _, b := range got {
		byGroup[b.group] = append(byGroup[b.group], b.bodies)
	}
	for group, batches := range byGroup {
		if diff := cmp.Diff([]string{"012", "345", "6"}, batches); diff != "" {
			t.Errorf("group %v: %s", group, diff)
		}
	}
}

// A handler's failure keeps its group away, not the others; a panic is a failure with a stack in the log.
func TestBackOff(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec(`select sb.alter_queue('server', poison_message_handling => false)`)
	var (
		good tally
		mu   sync.Mutex
		bad  []time.Time
	)
	cfg := s.config()
	log := &captured{}
	cfg.Logger = log.logger()
	s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			if b.Messages[0].Text() != "bad" {
				return good.handle(ctx, b)
			}
			mu.Lock()
			defer mu.Unlock()
			bad = append(bad, time.Now())
			switch len(bad) {
			case 1, 3:
				return errors.New("no luck")
			case 2, 4:
				panic("no luck either")
			}
			return good.handle(ctx, b)
		}, activator.HandlerOptions{MaxQueueReaders: 2})
	})
	s.send("bad")
	for i := range 200 {
		s.send(fmt.Sprint(i))
	}
	s.eventually("others go on", func() bool { return good.total() >= 200 })
	s.eventually("in the end it works", func() bool { return good.count("bad") == 1 })
	for i, want := range []time.Duration{
		100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
	} {
		if got := bad[i+1].Sub(bad[i]); got < want*8/10 || got > want*13/10+3*time.Second {
			t.Errorf("pause %d was %v, want about %v", i+1, got, want)
		}
	}
	if text := log.String(); strings.Count(text, "handler failed") != 4 || strings.Count(text, "stack=") != 2 ||
		!strings.Contains(text, "TestBackOff") {
		t.Errorf("log:\n%s", text)
	}
	s.eventually("the group's failures are forgotten", func() bool {
		return value[int](s, "select count(*) from sb_internal.group_backoff") == 0
	})
}

// The fifth failure in a row stops the queue; it can be started again.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var calls, mended atomic.Int32
	var disabled atomic.Int32
	cfg := s.config()
	cfg.Observer = activator.ObserverFunc(func(e activator.Event) {
		if _, ok := e.(activator.QueueDisabled); ok {
			disabled.Add(1)
		}
	})
	s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			if mended.Load() > 0 {
				mended.Add(1)
				return b.Broker.End(ctx, b.Messages[0].Conversation)
			}
			calls.Add(1)
			return errors.New("never")
		})
	})
	began := time.Now()
	s.send("x")
	s.eventually("queue off, in the table", func() bool {
		return !value[bool](s, "select is_enabled from sb_internal.queue where name = 'server'")
	})
	if took := time.Since(began); took < time.Second || took > 15*time.Second {
		t.Errorf("disabled after %v, want about 1.5 s", took)
	}
	if n := calls.Load(); n != 5 {
		t.Errorf("%d calls, want 5", n)
	}
	s.eventually("observed", func() bool { return disabled.Load() == 1 })
	mended.Store(1)
	s.exec("select sb.alter_queue('server', enabled => true)")
	s.eventually("handled after the start", func() bool { return mended.Load() == 2 })
}

// Deadlocks and the like are nobody's failure: retried, not logged as errors.
func TestRetryable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.config()
	log := &captured{}
	cfg.Logger = log.logger()
	var calls atomic.Int32
	s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			if calls.Add(1) == 1 {
				_, err := b.Tx.Exec(ctx, `do $$ begin raise exception 'would block' using errcode = '40P01'; end $$`)
				return err
			}
			return nil
		})
	})
	s.send("x")
	// The failed statement has freed the group, so the second call may come before the line about the first.
	s.eventually("called again", func() bool {
		return calls.Load() == 2 && strings.Contains(log.String(), "handler rolled back, will be retried")
	})
	if text := log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("log:\n%s", text)
	}
}

// The handler cannot end the transaction, by whatever means.
func TestTransactionIsTheActivators(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec(`select sb.alter_queue('server', poison_message_handling => false)`)
	var calls atomic.Int32
	cfg := s.config()
	log := &captured{}
	cfg.Logger = log.logger()
	s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			switch calls.Add(1) {
			case 1:
				if b.Tx.Commit(ctx) == nil || b.Tx.Rollback(ctx) == nil {
					t.Error("ended")
				}
				// An aborted transaction does not commit either, whatever the handler says.
				_, err := b.Tx.Exec(ctx, "select 1 / 0")
				if err == nil {
					t.Error("no error")
				}
			case 2:
				_, err := b.Tx.Exec(ctx, "rollback")
				return err
			case 3:
				savepoint, err := b.Tx.Begin(ctx)
				if err != nil {
					return err
				}
				if _, err := savepoint.Exec(ctx, "select 1 / 0"); err == nil {
					t.Error("no error")
				}
				return savepoint.Rollback(ctx)
			}
			return nil
		})
	})
	s.send("x")
	s.idle("server")
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls, want 3:\n%s", n, log)
	}
	if !strings.Contains(log.String(), "ended the transaction by a statement of its own") {
		t.Errorf("log:\n%s", log)
	}
}

// A handler that takes too long is cancelled and its work undone.
func TestHandlerTimeout(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var calls atomic.Int32
	cfg := s.config()
	log := &captured{}
	cfg.Logger = log.logger()
	s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			if calls.Add(1) > 1 {
				return nil
			}
			_, err := b.Tx.Exec(ctx, "select pg_sleep(60)")
			return err
		}, activator.HandlerOptions{Timeout: 200 * time.Millisecond})
	})
	s.send("x")
	s.eventually("called again", func() bool { return calls.Load() == 2 })
	s.idle("server")
	s.eventually("logged", func() bool { return strings.Contains(log.String(), "handler timeout of 200ms") })
}

// A function has the same time limit.
func TestFunctionTimeout(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate("function", `
begin
  perform from sb.receive('server');
  if nextval('app.calls') = 1 then
    perform pg_sleep(60);
  end if;
end`, 1)
	s.exec("create sequence app.calls")
	s.superuser("grant usage on sequence app.calls to public")
	cfg := s.config()
	cfg.HandlerTimeout = 200 * time.Millisecond
	s.start(cfg)
	s.send("x")
	s.idle("server")
}

// With AutoEnd, conversations that the peer has ended are ended; the handler still sees the messages.
func TestAutoEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kinds := make(chan sbroker.Kind, 10)
	s.start(s.config(), func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			for _, m := range b.Messages {
				if m.Text() == "I end it myself" {
					if err := b.Broker.End(ctx, m.Conversation); err != nil {
						return err
					}
					break
				}
				kinds <- m.Kind()
			}
			return nil
		}, activator.HandlerOptions{AutoEnd: true})
	})
	ended, failed, own := s.send("x"), s.send("y"), s.send("I end it myself")
	for _, end := range []error{
		s.b.End(t.Context(), ended), s.b.EndWithError(t.Context(), failed, 1, "no"), s.b.End(t.Context(), own),
	} {
		if end != nil && !errors.Is(end, sbroker.CodeConversationNotFound) {
			t.Fatal(end)
		}
	}
	s.eventually("no conversation is left", func() bool {
		return value[int](s, `
select count(*) from sb.conversation_endpoints as e join sb.services as s on s.service_id = e.service_id
where s.name = 'server'`) == 0
	})
	close(kinds)
	got := slices.Sorted(func(yield func(sbroker.Kind) bool) {
		for k := range kinds {
			if k != sbroker.KindApplication && !yield(k) {
				return
			}
		}
	})
	if diff := cmp.Diff([]sbroker.Kind{sbroker.KindEndDialog, sbroker.KindError}, got); diff != "" {
		t.Error(diff)
	}
}

// The reader limit holds over several activators, for Go handlers, and all of it is used.
func TestReaderLimit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec("select sb.alter_queue('server', max_queue_readers => 3)")
	for i := range 60 {
		s.send(fmt.Sprint(i))
	}
	var (
		done         tally
		running, top atomic.Int32
	)
	for i := range 2 {
		cfg := s.config()
		cfg.Name = fmt.Sprint("activator ", i)
		s.start(cfg, func(a *activator.Activator) {
			a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
				n := running.Add(1)
				defer running.Add(-1)
				for old := top.Load(); n > old && !top.CompareAndSwap(old, n); old = top.Load() {
				}
				if _, err := b.Tx.Exec(ctx, "select pg_sleep(0.02)"); err != nil {
					return err
				}
				return done.handle(ctx, b)
			}, activator.HandlerOptions{MaxQueueReaders: 10})
		})
	}
	s.within(30*time.Second, "all handled", func() bool { return done.total() == 60 })
	if n := top.Load(); n != 3 {
		t.Errorf("%d readers at most, want 3", n)
	}
}

// The same for SQL handlers, short and long ones.
// Rules
func TestReaderLimitSQL(t *testing.T) {
	t.Parallel()
	for kind, end := range map[string]string{"function": "return;", "procedure": "commit;"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.activate(kind, `
declare
  m record;
  began timestamptz := clock_timestamp();
begin
  loop
    select r.* into m from sb.receive('server', max_messages => 1) as r;
    exit when not found;
    perform pg_sleep(0.05);
    perform sb.end_conversation(m.conversation_handle);
    insert into public.seen (body, at) values (sb.body_text(m.message_body), began);
    `+end+`
  end loop;
end`, 3)
			// When each call ended.
			s.superuser(`alter table public.seen add until timestamptz default clock_timestamp()`)
			for i := range 60 {
				s.send(fmt.Sprint(i))
			}
			for i := range 2 {
				cfg := s.config()
				cfg.Name = fmt.Sprint("activator ", i)
				s.start(cfg)
			}
			s.within(30*time.Second, "all handled", func() bool { return s.seen() == 60 })
			top := value[int](s, `
select max((select count(distinct o.pid) from public.seen as o where o.at <= p.at and p.at < o.until)) from public.seen as p`)
			if top != 3 {
				t.Errorf("%d readers at most, want 3", top)
			}
		})
	}
}

// A lowered limit counts the readers that are left over; 0 starts none.
// Rules
func TestChangeReaderLimit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec("select sb.alter_queue('server', max_queue_readers => 4)")
	release := make(chan struct{})
	var running atomic.Int32
	s.start(s.config(), func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			running.Add(1)
			defer running.Add(-1)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return b.Broker.End(ctx, b.Messages[0].Conversation)
		}, activator.HandlerOptions{Batch: 1})
	})
	for range 20 {
		s.send("x")
	}
	s.eventually("four", func() bool { return running.Load() == 4 })
	s.exec("select sb.alter_queue('server', max_queue_readers => 6)")
	s.eventually("six", func() bool { return running.Load() == 6 })
	s.exec("select sb.alter_queue('server', max_queue_readers => 2)")
	release <- struct{}{}
	s.eventually("no new one", func() bool { return running.Load() == 5 })
	for range 3 {
		release <- struct{}{}
	}
	s.eventually("two are left", func() bool { return running.Load() == 2 })
	release <- struct{}{}
	s.eventually("one of two is replaced", func() bool {
		return value[int](s, "select count(*) from sb.queue_messages where queue_name = 'server'") == 20-5 && running.Load() == 2
	})
	s.exec("select sb.alter_queue('server', max_queue_readers => 0)")
	close(release)
	s.eventually("none", func() bool { return running.Load() == 0 })
	s.exec("select sb.alter_queue('server', max_queue_readers => 1)")
	s.idle("server")
}

// Killing the connection that hears notifications loses nothing, without any polling (B-53).
func TestListenerKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.config()
	cfg.PollInterval = time.Hour
	var done tally
	s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("server", done.handle)
		a.HandleFunc("new", done.handle)
	})
	kill := func() int {
		return value[int](s, `
select count(pg_terminate_backend(a.pid)) from pg_stat_activity as a
where a.datname = current_database() and a.application_name like 'sbactivator % listener'`)
	}
	s.superuser(fmt.Sprintf("grant pg_signal_backend to %s", s.db.Owner))
	sent, killed := 0, 0
	for killed < 20 {
		for range 1 + rand.IntN(5) {
			s.send(fmt.Sprint(sent))
			sent++
		}
		killed += kill()
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	s.eventually("listener is back", func() bool { return kill() == 1 })
	s.exec(`select sb.create_queue('new'), sb.create_service('new', 'new', '{DEFAULT}')`)
	s.exec(`select sb.send(sb.begin_dialog('client', 'new'), 'DEFAULT', 'for a queue made while nobody listened')`)
	sent++
	s.within(30*time.Second, "all handled", func() bool { return done.total() == sent })
}

// With every notification dropped, all is handled within the poll interval.
// Rules: R-318
func TestDeaf(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.config()
	cfg.PollInterval = 500 * time.Millisecond
	var done tally
	s.start(cfg, func(a *activator.Activator) {
		a.Deafen()
		a.HandleFunc("server", done.handle)
	})
	for i := range 5 {
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		s.send(fmt.Sprint(i))
		s.within(cfg.PollInterval*12/10+3*time.Second, "handled", func() bool { return done.total() == i+1 })
	}
}

// With notifications alone, no wake-up is lost at whatever gap.
func TestNoWakeUpLost(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.config()
	cfg.PollInterval = time.Hour
	var done tally
	for i := range 2 {
		cfg.Name = fmt.Sprint("activator ", i)
		s.start(cfg, func(a *activator.Activator) { a.HandleFunc("server", done.handle) })
	}
	const senders, each = 3, 150
	var senderGroup sync.WaitGroup
	for i := range senders {
		conn := s.db.Conn(t)
		senderGroup.Go(func() {
			for j := range each {
				// Sleeping inside and outside the transaction, so that senders commit at all stages of falling asleep.
				_, err := conn.Exec(context.Background(), `
select sb.send(sb.begin_dialog('client', 'server'), 'DEFAULT', $1::text), pg_sleep($2)`,
					fmt.Sprintf("%d-%d", i, j), rand.Float64()*0.01)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration(rand.ExpFloat64() * 20 * float64(time.Millisecond)))
			}
		})
	}
	senderGroup.Wait()
	s.within(30*time.Second, "all handled", func() bool { return done.total() == senders*each })
}

// A message behind somebody's lock is handled soon after the rollback that gives it free, which notifies nobody.
// Rules: R-318
func TestRollbackOfAnother(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.config()
	cfg.PollInterval = time.Hour
	other := s.db.Session(t, "other")
	s.send("x")
	other.Begin()
	if rows := other.Query("select sb.body_text(message_body) from sb.receive('server')"); len(rows) != 1 {
		t.Fatal("nothing received")
	}
	var done tally
	s.start(cfg, func(a *activator.Activator) { a.HandleFunc("server", done.handle) })
	s.send("y")
	s.eventually("the other group is handled", func() bool { return done.count("y") == 1 })
	time.Sleep(300 * time.Millisecond) // long enough to fall asleep
	other.Rollback()
	s.within(2*time.Second, "handled after the rollback", func() bool { return done.count("x") == 1 })
}

// A sender that looked for the waiting flag before it was up, and commits long after.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.config()
	cfg.PollInterval = time.Hour
	sender := s.db.Session(t, "sender")
	sender.Begin()
	sender.Exec(`select sb.send(sb.begin_dialog('client', 'server'), 'DEFAULT', 'late')`)
	var done tally
	s.start(cfg, func(a *activator.Activator) { a.HandleFunc("server", done.handle) })
	s.send("x")
	s.eventually("asleep", func() bool {
		return done.total() == 1 && value[int](s, "select count(*) from pg_locks where locktype = 'advisory' and classid = 8420") > 0
	})
	time.Sleep(500 * time.Millisecond)
	sender.Commit()
	s.within(2*time.Second, "handled", func() bool { return done.count("late") == 1 })
}

// Timers fall due in time, also one set while the activator sleeps for a later one.
// Rules: R-231
func TestTimers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.config()
	cfg.PollInterval = time.Hour
	fired := make(chan sbroker.Handle, 10)
	s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("client", func(_ context.Context, b *activator.Batch) error {
			for _, m := range b.Messages {
				if m.Kind() == sbroker.KindDialogTimer {
					fired <- m.Conversation
				}
			}
			return nil
		})
	})
	late, soon := s.send("x"), s.send("y")
	check := func(h sbroker.Handle, began time.Time, after time.Duration) {
		t.Helper()
		select {
		case got := <-fired:
			if took := time.Since(began); got != h || took < after || took > after+500*time.Millisecond {
				t.Errorf("timer of %v fired after %v, want %v after %v", got, took, h, after)
			}
		case <-time.After(after + 5*time.Second):
			t.Fatal("the timer did not fire")
		}
	}
	began := time.Now()
	if err := s.b.BeginTimer(t.Context(), late, 1200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	soonBegan := time.Now()
	if err := s.b.BeginTimer(t.Context(), soon, 400*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	check(soon, soonBegan, 400*time.Millisecond)
	check(late, began, 1200*time.Millisecond)
}

// Rows in the transmission queue are moved on at once when their sender says so, and by and by otherwise.
func TestTransmission(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("deaf ", deaf), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			cfg := s.config()
			cfg.PollInterval = 500 * time.Millisecond
			var done tally
			s.start(cfg, func(a *activator.Activator) {
				if deaf {
					a.Deafen()
				}
				a.HandleFunc("server", done.handle)
			})
			s.exec("select sb.alter_queue('server', enabled => false)")
			s.send("parked")
			// A sender that saw the queue off and commits when it is on.
			sender := s.db.Session(t, "sender")
			sender.Begin()
			sender.Exec(`select sb.send(sb.begin_dialog('client', 'server'), 'DEFAULT', 'stranded')`)
			s.exec("select sb.alter_queue('server', enabled => true)")
			s.eventually("the parked one", func() bool { return done.count("parked") == 1 })
			sender.Commit()
			s.within(15*time.Second, "the stranded one", func() bool { return done.count("stranded") == 1 })
		})
	}
}

// Run waits for running handlers, and starts nothing more.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	entered, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	a := s.start(s.config(), func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			calls.Add(1)
			entered <- struct{}{}
			<-release
			return b.Broker.End(ctx, b.Messages[0].Conversation)
		}, activator.HandlerOptions{MaxQueueReaders: 1, Batch: 1})
	})
	for range 3 {
		s.send("x")
	}
	<-entered
	stopped := make(chan error)
	go func() { stopped <- a.stop() }()
	select {
	case <-stopped:
		t.Fatal("did not wait for the handler")
	case <-time.After(200 * time.Millisecond):
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	if n := value[int](s, "select count(*) from sb.queue_messages where queue_name = 'server'"); n != 2 {
		t.Errorf("%d messages left, want 2", n)
	}
	s.noBackends()
}

// After the shutdown timeout what still runs is rolled back, Go and SQL alike.
func TestShutdownTimeout(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate("procedure", `begin perform from sb.receive('server'); perform pg_sleep(60); end`, 1)
	entered := make(chan struct{})
	cfg := s.config()
	cfg.ShutdownTimeout = 100 * time.Millisecond
	a := s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("client", func(ctx context.Context, b *activator.Batch) error {
			close(entered)
			<-ctx.Done()
			return ctx.Err()
		})
	})
	h := s.send("x")
	s.eventually("procedure runs", func() bool {
		return value[int](s, "select count(*) from sb.dm_broker_activated_tasks where procedure_name = 'app.handle'") == 1
	})
	if err := s.b.BeginTimer(t.Context(), h, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	<-entered
	began := time.Now()
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if n := value[int](s, "select count(*) from sb.queue_messages"); n != 2 {
		t.Errorf("%d messages left, want 2", n)
	}
	s.noBackends()
}

// noBackends waits until the server has noticed that no activator is there.
func (s *stage) noBackends() {
	s.t.Helper()
	s.eventually("no connection is left", func() bool {
		return value[int](s, `
select count(*) from pg_stat_activity where datname = current_database() and application_name like 'sbactivator %'`) == 0
	})
	if n := value[int](s, "select count(*) from sb_internal.activated_task"); n != 0 {
		s.t.Errorf("%d tasks still shown", n)
	}
}

// Switching activation off stops new calls, and back on starts them without a new message.
// Rules
func TestActivationOffOn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate("function", echo, 1)
	cfg := s.config()
	cfg.PollInterval = time.Hour
	s.start(cfg)
	s.send("1")
	s.eventually("handled", func() bool { return s.seen() == 1 })
	s.exec("select sb.alter_queue('server', activation_enabled => false)")
	time.Sleep(300 * time.Millisecond) // it does not promise to be at once
	s.eventually("nobody waits", func() bool {
		return value[int](s, "select count(*) from pg_locks where locktype = 'advisory' and classid = 8420") == 0
	})
	s.send("2")
	time.Sleep(300 * time.Millisecond)
	if n := s.seen(); n != 1 {
		t.Errorf("%d handled, want 1", n)
	}
	s.exec("select sb.alter_queue('server', activation_enabled => true)")
	s.eventually("handled without a new message", func() bool { return s.seen() == 2 })
}

// While the broker is off nothing is started.
func TestBrokerOff(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.config()
	cfg.PollInterval = 500 * time.Millisecond
	h := s.send("1")
	var done tally
	s.exec("select sb.disable_broker()")
	s.start(cfg, func(a *activator.Activator) { a.HandleFunc("server", done.handle) })
	time.Sleep(time.Second)
	if n := done.total(); n != 0 {
		t.Errorf("%d handled while the broker was off", n)
	}
	s.exec("select sb.enable_broker()")
	s.eventually("handled", func() bool { return done.total() == 1 })
	if err := s.b.End(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// What an activator does shows in the views.
func TestViews(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate("procedure", `begin perform from sb.receive('server'); perform pg_sleep(2); end`, 1)
	cfg := s.config()
	cfg.Name = "shown"
	s.start(cfg)
	state := func() string {
		return value[string](s, "select state from sb.dm_broker_queue_monitors where queue_name = 'server'")
	}
	s.send("x")
	s.eventually("task", func() bool {
		return value[int](s, `
select count(*) from sb.dm_broker_activated_tasks as t join pg_stat_activity as a on a.pid = t.spid
where t.queue_name = 'server' and t.procedure_name = 'app.handle' and t.activator = 'shown'
and t.execute_as = $1`, s.db.Name+"_executor") == 1
	})
	s.eventually("inactive", func() bool { return state() == "INACTIVE" })
	s.eventually("no task", func() bool { return value[int](s, "select count(*) from sb.dm_broker_activated_tasks") == 0 })
}

// Senders do not notify while readers are busy, and do when they sleep.
func TestWaitingFlag(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	flags := func() int {
		return value[int](s, "select count(*) from pg_locks where locktype = 'advisory' and classid = 8420 and mode = 'ShareLock'")
	}
	release := make(chan struct{})
	s.start(s.config(), func(a *activator.Activator) {
		a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
			<-release
			return nil
		}, activator.HandlerOptions{MaxQueueReaders: 1})
	})
	s.eventually("flag up", func() bool { return flags() == 1 })
	s.send("x")
	s.eventually("flag down", func() bool { return flags() == 0 })
	close(release)
	s.eventually("flag up again", func() bool { return flags() == 1 })
}

// Run does not begin where it cannot work.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	stranger := s.db.CreateRole(t, "stranger")
	for name, c := range map[string]struct {
		url  string
		want string
	}{
		"unreachable":   {"postgres://nobody@127.0.0.1:1/none", "failed to connect"},
		"not admin":     {s.db.URLAs(stranger), "permission denied"},
		"not installed": {pgtest.Empty(t).URL(), "not installed"},
	} {
		cfg := s.config()
		cfg.DatabaseURL = c.url
		a, err := activator.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = a.Run(t.Context())
		if !errors.Is(err, activator.ErrCannotStart) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}

	a, err := activator.New(s.config())
	if err != nil {
		t.Fatal(err)
	}
	a.Handle("server", nil)
	if err := a.Run(t.Context()); !errors.Is(err, activator.ErrCannotStart) {
		t.Errorf("nil handler: %v", err)
	}
	for _, cfg := range []activator.Config{
		{DatabaseURL: "postgres://u:secret@host:port/"}, {PoolSize: -1}, {PollInterval: -1}, {HandlerTimeout: -1},
	} {
		if _, err := activator.New(cfg); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// Run that is asked to end while it still waits for the database ends at once, without an error.
func TestStopDuringStartup(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a, err := activator.New(activator.Config{DatabaseURL: "postgres://nobody@127.0.0.1:1/none"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	time.Sleep(100 * time.Millisecond)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The functions for activators are for admins only.
func TestRights(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	stranger := s.db.CreateRole(t, "stranger")
	s.exec("select sb.grant_receive('server', $1)", stranger)
	// Even one who may call everything.
	s.exec(fmt.Sprintf("grant execute on all functions in schema sb, sb_internal to %s", stranger))
	session := s.db.SessionAs(t, "stranger", stranger)
	session.Exec("select sb.get_conversation_group('server')") // as the grant says
	for _, call := range []string{
		"activation_plan('{server}')", "activation_scan('{1}')", "queue_writers()", "probe_queue(1)", "take_reader(1)",
		"back_off_group(gen_random_uuid())", "clear_back_off(gen_random_uuid())", "report_activation('x', '[]', '[]')",
	} {
		session.ExecError("42501", "select sb."+call)
	}
}

// Three activators under load, whose backends are killed at random: every message is handled exactly once, in order.
func TestChaos(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.superuser(fmt.Sprintf("grant pg_signal_backend to %s", s.db.Owner))
	s.exec("select sb.alter_queue('server', poison_message_handling => false, max_queue_readers => 5)")
	s.exec("create table public.handled (conversation uuid, n int, id bigserial)")
	s.exec(fmt.Sprintf("grant insert on public.handled to %s", s.role))
	s.exec(fmt.Sprintf("grant usage on sequence public.handled_id_seq to %s", s.role))
	var running, top atomic.Int32
	for i := range 3 {
		cfg := s.config()
		cfg.Name = fmt.Sprint("activator ", i)
		cfg.Logger = nil
		s.start(cfg, func(a *activator.Activator) {
			a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
				n := running.Add(1)
				defer running.Add(-1)
				for old := top.Load(); n > old && !top.CompareAndSwap(old, n); old = top.Load() {
				}
				for _, m := range b.Messages {
					_, err := b.Tx.Exec(ctx, "insert into public.handled (conversation, n) values ($1, $2::text::int)", m.Conversation, m.Text())
					if err != nil {
						return err
					}
				}
				return nil
			}, activator.HandlerOptions{Batch: 3, MaxQueueReaders: 8})
		})
	}
	const conversations, each = 12, 60
	handles := make([]sbroker.Handle, conversations)
	for i := range handles {
		handles[i] = s.send("0")
	}
	var group sync.WaitGroup
	for _, h := range handles {
		group.Go(func() {
			for n := 1; n < each; n++ {
				if err := s.b.SendText(context.Background(), h, sbroker.DefaultMessageType, fmt.Sprint(n)); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
			}
		})
	}
	sent := make(chan struct{})
	go func() { group.Wait(); close(sent) }()
	killed := 0
	for over := false; !over; {
		select {
		case <-sent:
			over = true
		case <-time.After(time.Duration(rand.IntN(60)) * time.Millisecond):
			killed += value[int](s, `
select count(pg_terminate_backend(k.pid))
from (
  select a.pid from pg_stat_activity as a
  where a.datname = current_database() and a.application_name like 'sbactivator %'
  order by random() limit 2) as k`)
		}
	}
	s.within(30*time.Second, "all handled", func() bool {
		return value[int](s, "select count(*) from public.handled") >= conversations*each
	})
	time.Sleep(200 * time.Millisecond)
	if n := value[int](s, "select count(*) from public.handled"); n != conversations*each {
		t.Errorf("%d handled, want %d", n, conversations*each)
	}
	if n := value[int](s, `
select count(*) from (
  select h.n, row_number() over (partition by h.conversation order by h.id) - 1 as position from public.handled as h) as o
where o.n <> o.position`); n != 0 {
		t.Errorf("%d out of order", n)
	}
	t.Logf("%d backends killed, %d readers at most", killed, top.Load())
}

// A queue that is off when the activator starts is in the log, once, and when it is on again.
func TestQueueOff(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec("select sb.alter_queue('server', enabled => false)")
	cfg := s.config()
	cfg.PollInterval = 20 * time.Millisecond
	log := &captured{}
	cfg.Logger = log.logger()
	var seen tally
	a := s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("server", seen.handle)
		a.HandleFunc("Servr", seen.handle)
	})
	s.eventually("the log has it", func() bool { return strings.Contains(log.String(), "the queue is off") })
	since := a.Status().LookedAt
	s.eventually("some looks", func() bool { return a.Status().LookedAt.Sub(since) > 200*time.Millisecond })
	s.exec("select sb.alter_queue('server', enabled => true)")
	s.eventually("the log has that", func() bool { return strings.Contains(log.String(), "the queue is on again") })
	s.exec("select sb.alter_queue('server', enabled => false)")
	s.eventually("and that", func() bool { return strings.Count(log.String(), "the queue is off") == 2 })
	if text := log.String(); strings.Count(text, "level=WARN") != 3 || !strings.Contains(text, `queue=Servr nearest=server`) {
		t.Errorf("log:\n%s", text)
	}
}
