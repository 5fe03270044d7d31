package activator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/sbroker"
)

// events collects what an Observer hears.
type events struct {
	mu   sync.Mutex
	list []activator.Event
}

func (l *events) Observe(e activator.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
}

// of returns the events of one type for which ok holds.
func of[E activator.Event](l *events, ok func(E) bool) (found []E) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.list {
		if e, is := e.(E); is && ok(e) {
			found = append(found, e)
		}
	}
	return found
}

// What happens to a batch is observed, and logged, with the ids to look for.
func TestObserveHandler(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var (
		seen  events
		out   captured
		calls atomic.Int32
	)
	cfg := s.config()
	cfg.Observer = &seen
	cfg.Logger = slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var group sbroker.GroupID
	var conversation sbroker.Handle
	a := s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("server", func(_ context.Context, b *activator.Batch) error {
			group, conversation = b.Group, b.Messages[0].Conversation
			if calls.Add(1) == 1 {
				return errors.New("no luck")
			}
			return nil
		})
	})
	s.eventually("listening", func() bool { return a.Status().Listening })
	s.eventually("the waiting flag is up", func() bool {
		return value[int](s, "select count(*) from pg_locks where locktype = 'advisory' and classid = 8420 and mode = 'ShareLock'") > 0
	})
	s.send("x", "y")
	s.eventually("handled", func() bool {
		return len(of(&seen, func(e activator.HandlerCalled) bool { return e.Err == nil })) == 1
	})
	s.eventually("notified", func() bool { // a look may have been faster
		return len(of(&seen, func(e activator.Notified) bool { return e.Queue == "server" })) > 0
	})
	if err := a.stop(); err != nil { // also makes group and conversation safe to read
		t.Fatal(err)
	}
	called := of(&seen, func(activator.HandlerCalled) bool { return true })
	if len(called) != 2 || called[0].Err == nil || called[0].Retryable {
		t.Fatalf("%+v", called)
	}
	for _, e := range called {
		if e.Queue != "server" || e.Procedure != "" || e.Group != group || e.Conversation != conversation || e.Messages != 2 ||
			e.Waited <= 0 || e.Took <= 0 {
			t.Errorf("%+v", e)
		}
	}
	if e := of(&seen, func(activator.BackedOff) bool { return true }); len(e) != 1 || e[0].Queue != "server" ||
		e[0].Group != group || e[0].For <= 0 {
		t.Errorf("back-offs: %+v", e)
	}
	for what, n := range map[string]int{
		"notified":       len(of(&seen, func(e activator.Notified) bool { return e.Queue == "server" })),
		"swept":          len(of(&seen, func(e activator.Polled) bool { return e.Sweep && e.Queues > 0 })),
		"looked":         len(of(&seen, func(e activator.Polled) bool { return !e.Sweep && e.Queues > 0 })),
		"listening":      len(of(&seen, func(e activator.Listening) bool { return e.Up })),
		"deaf again":     len(of(&seen, func(e activator.Listening) bool { return !e.Up })),
		"reader started": len(of(&seen, func(e activator.ReaderStarted) bool { return e.Queue == "server" })),
	} {
		if n == 0 {
			t.Errorf("nothing observed: %s", what)
		}
	}
	ids := map[string]bool{}
	for line := range bytes.Lines([]byte(out.String())) {
		var entry struct {
			Msg          string
			Group        string `json:"conversation_group_id"`
			Conversation string `json:"conversation_handle"`
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if entry.Group == group.String() && entry.Conversation == conversation.String() {
			ids[entry.Msg] = true
		}
	}
	if !ids["handler failed"] || !ids["handled"] {
		t.Errorf("not logged with ids: %v\n%s", ids, out.String())
	}
}

// An activation procedure receives by itself, but what it will find is known to have waited.
func TestObserveProcedure(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate("function", `
begin
  perform from sb.receive('server');
  if nextval('app.calls') = 1 then
    raise exception 'no luck';
  end if;
end`, 1)
	s.exec("create sequence app.calls")
	s.superuser("grant usage on sequence app.calls to public")
	s.send("x")
	s.exec("update sb_internal.message set message_enqueue_time = message_enqueue_time - interval '1 hour'")
	var seen events
	cfg := s.config()
	cfg.Observer = &seen
	a := s.start(cfg)
	s.idle("server")
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	called := of(&seen, func(activator.HandlerCalled) bool { return true })
	if len(called) != 2 || called[0].Err == nil || called[1].Err != nil {
		t.Fatalf("%+v", called)
	}
	for _, e := range called {
		if e.Procedure != "app.handle" || e.Waited < time.Hour || e.Waited > time.Hour+time.Minute || !e.Conversation.IsZero() {
			t.Errorf("%+v", e)
		}
	}
	if e := of(&seen, func(activator.BackedOff) bool { return true }); len(e) != 1 || !e[0].Group.IsZero() || e[0].For <= 0 {
		t.Errorf("back-offs: %+v", e)
	}
}

// Status follows Run, and may be asked while it starts and ends.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.config()
	a, err := activator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	inHandler, release := make(chan struct{}), make(chan struct{})
	a.HandleFunc("server", func(context.Context, *activator.Batch) error {
		close(inHandler)
		<-release
		return nil
	}, activator.HandlerOptions{MaxQueueReaders: 3})
	if got := a.Status(); !cmp.Equal(got, activator.Status{}) || got.Phase.String() != "idle" {
		t.Errorf("at first: %+v", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	s.eventually("working", func() bool {
		got := a.Status()
		return got.Phase == activator.Working && got.Listening && !got.LookedAt.IsZero() && len(got.Queues) == 1
	})
	s.send("x")
	<-inHandler
	want := []activator.QueueStatus{{Queue: "server", IsOn: true, Served: true, Readers: 1, Limit: 3}}
	s.eventually("one reader", func() bool { return cmp.Equal(a.Status().Queues, want) })
	cancel()
	s.eventually("stopping", func() bool { return a.Status().Phase == activator.Stopping })
	if got := a.Status(); !slices.ContainsFunc(got.Queues, func(q activator.QueueStatus) bool { return q.Readers == 1 }) {
		t.Errorf("while stopping: %+v", got)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := a.Status(); got.Phase != activator.Stopped || got.Listening || got.Phase.String() != "stopped" {
		t.Errorf("at last: %+v", got)
	}
}
