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
