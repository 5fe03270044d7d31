package sqltest

import (
	"testing"
	"time"
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
