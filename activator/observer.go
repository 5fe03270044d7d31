package activator

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pgsbroker/sbroker/sbroker"
)

// Observer hears of what an Activator does, for metrics. It is called from many goroutines, often while a
// transaction is open, and must neither block nor panic. What is rather a state than an event is in
// [Activator.Status].
type Observer interface {
	Observe(Event)
}

// ObserverFunc makes an Observer of a function.
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

// Event is one of the types below. More may be added; an Observer ignores those it does not know.
type Event interface{ event() }

// ReaderStarted says that a reader began to work on a queue.
type ReaderStarted struct{ Queue sbroker.QueueName }

// ReaderStopped says that a reader found nothing more to do, or failed.
type ReaderStopped struct{ Queue sbroker.QueueName }

// HandlerCalled says how one call of a handler, with its transaction, ended.
type HandlerCalled struct {
	Queue sbroker.QueueName
	// Procedure is the activation procedure, empty for other handlers.
	Procedure string
	// Group and Conversation are those of the first message; zero for an activation procedure.
	Group        sbroker.GroupID
	Conversation sbroker.Handle
	// Messages received; 0 for an activation procedure, which receives by itself.
	Messages int
	// Waited is how long the first message was in the queue when the handler began, by the clocks of server
	// and activator; for an activation procedure by the server's alone.
	Waited time.Duration
	// Took is the time of the call and the commit.
	Took time.Duration
	// Err is nil when everything was committed.
	Err error
	// Retryable is set for errors that are nobody's fault, such as deadlocks.
	Retryable bool
}

// BackedOff says that after a failure something is left alone for a while.
type BackedOff struct {
	Queue sbroker.QueueName
	// Group is the conversation group that is left alone; zero when it is the whole queue, as after the
	// failure of an activation procedure.
	Group sbroker.GroupID
	For   time.Duration
}

// NotReceived says that an activation procedure or program has ended, more than once in a row, without receiving what is
// there. The queue is left alone for a while, as a BackedOff tells too.
type NotReceived struct{ Queue sbroker.QueueName }

// Notified says that a notification was heard.
type Notified struct {
	// Queue is empty for one that is about no queue in particular, on the channel sb_events.
	Queue sbroker.QueueName
}

// Polled says that queues were looked at without a notification.
type Polled struct {
	Queues int
	// Sweep is set for the look at all queues every Config.PollInterval or after a trouble; else something was
	// expected: a due timer, the end of a back-off, what another transaction holds.
	Sweep bool
}

// Listening says whether the connection that hears notifications is up.
type Listening struct{ Up bool }

// Delivered says how many messages a run of the forwarder moved out of the transmission queue.
type Delivered struct{ Messages int64 }

// QueueDisabled says that poison message handling switched a queue off. Every activator that listens hears of it.
type QueueDisabled struct{ Queue sbroker.QueueName }

func (ReaderStarted) event() {}
func (ReaderStopped) event() {}
func (HandlerCalled) event() {}
func (BackedOff) event()     {}
func (NotReceived) event()   {}
func (Notified) event()      {}
func (Polled) event()        {}
func (Listening) event()     {}
func (Delivered) event()     {}
func (QueueDisabled) event() {}

// Status is what an Activator is doing at one moment.
type Status struct {
	// Phase of Run.
	Phase Phase
	// Listening is set while there is a connection that hears notifications. Without one messages are
	// found by polling.
	Listening bool
	// LookedAt is when the activator last looked at its queues and got an answer; zero: not yet. Something is wrong
	// when that is several times Config.PollInterval ago.
	LookedAt time.Time
	// Queues that have activation on, or a handler here, by id.
	Queues []QueueStatus
}

// QueueStatus is the part of Status about one queue.
type QueueStatus struct {
	Queue sbroker.QueueName
	// IsOn is false for a queue that has been stopped.
	IsOn bool
	// Served is false when this activator cannot read the queue; the log says why.
	Served bool
	// Readers that run here, and how many may run over all activators.
	Readers, Limit int
}

// Phase is how far Run has come.
type Phase int32

// The phases, in their order.
const (
	Idle     Phase = iota // Run has not connected yet
	Working               // it starts readers as they are needed
	Stopping              // it has been asked to end and waits for those that still run
	Stopped               // it has returned
)

// String returns the phase in words.
func (p Phase) String() string {
	return [...]string{Idle: "idle", Working: "working", Stopping: "stopping", Stopped: "stopped"}[p]
}

// health is what Status says beside the monitors.
type health struct {
	phase    atomic.Int32
	lookedAt atomic.Pointer[time.Time]
}

func (h *health) enter(p Phase) { h.phase.Store(int32(p)) }

func (h *health) looked(at time.Time) { h.lookedAt.Store(&at) }

// Status may be called at any time, by anybody. It asks no database.
func (a *Activator) Status() Status {
	s := Status{Phase: Phase(a.health.phase.Load())}
	if at := a.health.lookedAt.Load(); at != nil {
		s.LookedAt = *at
	}
	a.mu.Lock()
	s.Listening = a.isHearing
	a.mu.Unlock()
	for _, m := range a.allMonitors() {
		s.Queues = append(s.Queues, m.status())
	}
	return s
}

func (m *monitor) status() QueueStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return QueueStatus{Queue: m.name, IsOn: m.isOn, Served: m.runner != nil, Readers: len(m.running), Limit: m.limit}
}

// called observes one call of a handler. Those that fail are logged where it is known what comes of it.
func (a *Activator) called(ctx context.Context, e HandlerCalled) {
	e.Retryable = sbroker.IsRetryable(e.Err)
	a.cfg.Observer.Observe(e)
	if e.Err != nil || !a.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := []any{"queue", e.Queue, "took", e.Took, "waited", e.Waited}
	if e.Procedure != "" {
		attrs = append(attrs, "procedure", e.Procedure)
	} else {
		attrs = append(attrs, "conversation_group_id", e.Group, "conversation_handle", e.Conversation,
			"messages", e.Messages)
	}
	a.log.DebugContext(ctx, "handled", attrs...)
}
