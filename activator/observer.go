package activator

import (
	"time"

	"github.com/pgsbroker/sbroker/sbroker"
)

// Observer hears of what an Activator does, for metrics. It is called from many goroutines, often while a
// transaction is open, and must neither block nor panic.
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
	// Procedure is the activation procedure, empty for a Go handler.
	Procedure string
	// Messages received; 0 for an activation procedure, which receives by itself.
	Messages int
	// Waited is how long the first message was in the queue, 0 for an activation procedure. It compares
	// the clocks of server and activator.
	Waited time.Duration
	// Took is the time of the call and the commit.
	Took time.Duration
	// Err is nil when everything was committed.
	Err error
	// Retryable is set for errors that are nobody's fault, such as deadlocks.
	Retryable bool
}

// Listening says whether the connection that hears notifications is up.
type Listening struct{ Up bool }

// Delivered says how many messages a run of the forwarder moved out of the transmission queue.
type Delivered struct{ Messages int64 }

// QueueDisabled says that poison message handling switched a queue off.
type QueueDisabled struct{ Queue sbroker.QueueName }

func (ReaderStarted) event() {}
func (ReaderStopped) event() {}
func (HandlerCalled) event() {}
func (Listening) event()     {}
func (Delivered) event()     {}
func (QueueDisabled) event() {}
