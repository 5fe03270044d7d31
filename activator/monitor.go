package activator

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pgsbroker/sbroker/sbroker"
)

// State of a queue monitor, as sb.dm_broker_queue_monitors shows it.
const (
	stateInactive  = "INACTIVE"
	stateNotified  = "NOTIFIED"
	stateReceiving = "RECEIVES_OCCURRING"
)

const (
	firstLook = 5 * time.Millisecond   // after the flag went up; doubles
	quietLook = 250 * time.Millisecond // the longest pause between looks while something may turn up unannounced
	busyLook  = 50 * time.Millisecond  // the first look for another reader's work while readers are busy; doubles
	slackLook = time.Second            // the longest pause between those
	lookSlack = 20 * time.Millisecond  // how much earlier a look may be, to be made together with others
	slowLook  = 20                     // looks take at most 1/20 of the time, if they are slow
	longLook  = 2 * time.Second        // but a slow one, which may have been an accident, puts off the next one by no more than this
	flagLag   = 20 * time.Millisecond  // a queue busy for longer than this does without notifications
	emptyHold = 100 * time.Millisecond // no further reader is added so soon after one that found nothing
	fullHold  = 500 * time.Millisecond // when other activators have all the reader slots

	firstGuard = 100 * time.Millisecond // the rest of a procedure that has not received; doubles
)

// monitor watches one queue and starts its readers. doc.go draws its life.
type monitor struct {
	a    *Activator
	id   int32
	name sbroker.QueueName
	log  *slog.Logger

	mu      sync.Mutex
	runner  runner // nil: nothing to start
	version string // of the activation procedure
	limit   int    // of readers, over all activators
	slots   int    // new readers take one of so many slots: less than limit while readers are left over from a higher limit
	isOn    bool
	saidOff bool // the log has it that the queue is off

	// Readers.
	running    map[*reader]struct{}
	wakes      uint64    // grows with every reason to look
	notified   bool      // the last reason was a notification
	productive bool      // something was found since the first of the running readers started
	emptyAt    time.Time // when a reader last found nothing
	startedAt  time.Time // when a reader last was started
	busySince  time.Time // when the first of the running readers started

	// Rest after failures: no reader is started before restUntil.
	restUntil time.Time
	failures  int           // of the procedure or the connection, in a row
	isDown    bool          // the handler could not work when it was last tried, whatever it was asked
	guard     time.Duration // the last rest of a procedure that did not receive; 0 for one that does
	guardSeen int64         // the receive counter then
	retryAt   time.Time     // when the group that failed last comes out of its back-off

	// Looks.
	lookAt   time.Time // zero: not before the next sweep
	pause    time.Duration
	ready    bool // there were ready rows at the last look
	wantFlag bool
	flagUp   bool            // the waiting flag is up
	fence    map[string]bool // writers that may have missed the flag; nil: not asked for yet

	reported string // the state last reported
}

// reader is one goroutine that works on the queue until there is nothing more to do.
type reader struct {
	runner  runner
	pid     uint32 // of its backend; 0 until it has one
	started time.Time
}

// configure makes the monitor serve what the plan says. It returns a runner that is no longer needed.
func (m *monitor) configure(p plannedQueue, r runner, option int) (retired runner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := readerLimit(p, option)
	slots := max(0, limit-p.Surplus)
	if r != m.runner {
		retired = m.runner
	}
	changed := r != m.runner || slots > m.slots || p.IsOn != m.isOn || p.Version != m.version
	m.runner, m.limit, m.slots, m.isOn, m.version = r, limit, slots, p.IsOn, p.Version
	if changed {
		m.restUntil, m.failures, m.guard, m.isDown = time.Time{}, 0, 0, false
		m.lookBy(time.Now())
	}
	return retired
}

// logSwitch says in the log that the queue is off, once, and when that is over.
func (m *monitor) logSwitch(isOn bool) {
	m.mu.Lock()
	changed := m.saidOff == isOn
	m.saidOff = !isOn
	m.mu.Unlock()
	switch {
	case changed && isOn:
		m.log.Info("the queue is on again")
	case changed:
		m.log.Warn("the queue is off, or the broker is: nothing is received here until it is switched on, " +
			"with sb.alter_queue(name, enabled => true)")
	}
}

// readerLimit is how many readers a queue may have, over all activators: the lower of the queue's own limit
// and the handler's, as far as they are set.
func readerLimit(p plannedQueue, option int) int {
	switch {
	case p.MaxReaders < 0 && option == 0:
		return defaultReaders
	case p.MaxReaders < 0:
		return option
	case option == 0:
		return p.MaxReaders
	default:
		return min(option, p.MaxReaders)
	}
}

// notify says that a notification for the queue has come.
func (m *monitor) notify() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake(true)
}

// wake says that there may be something to receive. The caller holds the mutex.
func (m *monitor) wake(notified bool) {
	m.wakes++
	m.notified = m.notified || notified
	m.start()
}

// start starts a reader if it may. The caller holds the mutex.
func (m *monitor) start() {
	if m.runner == nil || !m.isOn || m.slots == 0 || len(m.running) >= m.limit || !m.a.mayStart() {
		return
	}
	now := time.Now()
	if now.Before(m.restUntil) {
		m.lookBy(m.restUntil)
		return
	}
	if len(m.running) == 0 {
		m.productive, m.busySince = false, now
	} else if m.guard > 0 || m.failures > 0 || m.isDown {
		return // one is enough to find out whether it works again
	}
	m.startedAt = now
	r := &reader{runner: m.runner}
	m.running[r] = struct{}{}
	m.a.readers.Go(func() { m.read(r) })
	m.lookBy(now.Add(busyLook))
}

// lookBy makes the scheduler look not later than at. The caller holds the mutex.
func (m *monitor) lookBy(at time.Time) {
	if m.lookAt.IsZero() || at.Before(m.lookAt) {
		m.lookAt = at
		m.a.scheduler.poke()
	}
}

// read is the life of a reader.
func (m *monitor) read(r *reader) {
	end := ending{outcome: full, err: errors.New("the reader's goroutine was ended")} // runtime.Goexit in a handler
	var s session
	defer func() {
		if s != nil {
			s.close(end.err != nil)
		}
		if pause := m.finish(r, end); pause > 0 {
			m.a.cfg.Observer.Observe(BackedOff{Queue: m.name, For: pause})
			if _, ok := errors.AsType[*errNotReceived](end.err); ok && pause > firstGuard {
				m.a.cfg.Observer.Observe(NotReceived{Queue: m.name})
			}
		}
		m.a.cfg.Observer.Observe(ReaderStopped{Queue: m.name})
	}()
	m.a.cfg.Observer.Observe(ReaderStarted{Queue: m.name})
	var err error
	if s, err = r.runner.open(m.a.starting); err != nil {
		end = ending{err: err}
		return
	}
	m.mu.Lock()
	r.pid, r.started = s.pid(), time.Now()
	m.mu.Unlock()
	m.a.reporter.poke()
	for {
		slots, wakes, ok := m.next(r.runner)
		if !ok {
			end = ending{outcome: full, wakes: wakes}
			return
		}
		out, err := s.step(m.a.working, slots, m.found)
		if out != worked || err != nil {
			end = ending{outcome: out, err: err, wakes: wakes}
			return
		}
		m.answered()
	}
}

// ending is how a reader came to its end.
type ending struct {
	outcome outcome
	err     error
	wakes   uint64 // the monitor's when the last step began
}

// next says whether a reader goes on.
func (m *monitor) next(r runner) (slots int, wakes uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots, m.wakes, m.runner == r && m.isOn && m.slots > 0 && len(m.running) <= m.limit && m.a.mayStart() && !m.isResting()
}

// isResting reports whether the handler is to be left alone, also by readers that run. The caller holds the mutex.
func (m *monitor) isResting() bool { return m.isDown && time.Now().Before(m.restUntil) }

// answered says that the handler has worked on something, or has refused it.
func (m *monitor) answered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isDown || m.isResting() { // what has begun before the rest proves nothing
		return
	}
	m.isDown = false
	if m.failures > 0 {
		m.log.Info("the handler works again")
	}
	m.proceed()
}

// found says that a reader has found something: there may be more, for another one.
func (m *monitor) found() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isDown { // else it is not known yet what the handler makes of it
		m.proceed()
	}
}

// proceed takes in that the queue is being worked on. The caller holds the mutex.
func (m *monitor) proceed() {
	if !m.productive {
		m.productive = true
		m.a.reporter.poke()
	}
	m.pause, m.failures, m.guard = 0, 0, 0
	if time.Since(m.emptyAt) > emptyHold {
		m.start()
	}
}

// lookNow says that something may have changed unannounced.
func (m *monitor) lookNow() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lookBy(time.Now())
}

// retryIn says that a group of the queue is left alone for d.
func (m *monitor) retryIn(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retryAt = time.Now().Add(d)
	m.lookBy(m.retryAt)
}

// finish takes a reader off, and returns for how long the queue is left alone because it has failed.
func (m *monitor) finish(r *reader, end ending) (pause time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, r)
	m.a.reporter.poke()
	now := time.Now()
	switch {
	case end.err != nil:
		return m.rest(now, end.err)
	case end.outcome == full:
		m.setFlag(false)
		m.lookAt = time.Time{}
		m.lookBy(now.Add(jitter(fullHold)))
	case m.wakes != end.wakes:
		// Something came after the last look.
		m.start()
	default:
		m.emptyAt = now
		m.guard = 0
		if !m.isDown {
			m.failures = 0
		}
		if len(m.running) > 0 {
			break
		}
		if m.productive {
			m.pause = 0
		} else if m.notified {
			// A notification for nothing: others were faster, or somebody holds the group. No more of them
			// until the next look.
			m.setFlag(false)
		}
		m.notified = false
		m.lookBy(now.Add(m.pause))
	}
	return 0
}

// rest keeps the queue from being read for a while, after an error of its reader. The caller holds the mutex.
func (m *monitor) rest(now time.Time, err error) (pause time.Duration) {
	unreceived, isUnreceived := errors.AsType[*errNotReceived](err)
	unavailable, isUnavailable := errors.AsType[*unavailableError](err)
	switch {
	case !m.a.mayStart():
		return 0
	case hasCode(err, sbroker.CodeQueueDisabled), hasCode(err, sbroker.CodeQueueNotFound):
		// Switched off or dropped this moment; the plan tells.
		m.isOn = false
		m.setFlag(false)
		m.a.scheduler.replan()
		return 0
	case isUnreceived && m.guard > 0 && now.Before(m.restUntil):
		return 0 // it has begun before the rest
	case isUnreceived:
		m.guard = min(max(firstGuard, 2*m.guard), 30*time.Second)
		pause = m.guard
		if unreceived.receives != nil {
			m.guardSeen = *unreceived.receives
		}
		if unreceived.others {
			pause = min(pause, time.Second)
		}
		level := slog.LevelWarn
		if pause <= firstGuard {
			// Once it may be the race of several readers for the last message: the look of one hides it from the
			// receive of another for a moment.
			level = slog.LevelDebug
		}
		m.log.Log(context.Background(), level, err.Error(), "retry_in", pause)
	case isUnavailable && m.isResting(): // it has begun before the rest
		if at := now.Add(unavailable.after); at.After(m.restUntil) {
			m.restUntil = at
		}
		return 0
	case isUnavailable && unavailable.known:
		m.isDown = true
		pause = unavailable.after
	case isUnavailable:
		m.isDown = true
		m.failures++
		pause = cmp.Or(unavailable.after, backoff(m.failures))
		m.log.Warn("the handler cannot work now and is left alone", "failures", m.failures, "retry_in", pause, "error", err)
	default:
		if pause = m.restUntil.Sub(now); pause <= 0 { // else it has begun before the rest
			m.failures++
			pause = backoff(m.failures)
		}
		switch {
		case isOutage(err):
			m.a.outage(err)
		case sbroker.IsRetryable(err):
			m.log.Info("reader rolled back, will be retried", "retry_in", pause, "error", err)
		default:
			m.log.Error("reader failed", "failures", m.failures, "retry_in", pause, "error", err)
		}
	}
	m.restUntil = now.Add(pause)
	// Look at once: a failure may have been the last that the queue was allowed.
	m.lookBy(now)
	return pause
}

// looked takes in what the scheduler saw of the queue, in a look that began at began.
func (m *monitor) looked(s scan, writers []string, hadFlag bool, began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.isOn, m.ready = s.IsOn, s.HasReady
	if !m.isOn || m.runner == nil || m.limit == 0 {
		m.setFlag(false)
		return
	}
	if m.guard > 0 && s.Receives != m.guardSeen {
		// Somebody received: worth another try of the procedure that did not.
		m.guard, m.restUntil = 0, time.Time{}
	}
	switch {
	case now.Before(m.restUntil):
		m.setFlag(false)
		m.lookBy(m.restUntil)
	case len(m.running) > 0:
		if now.Sub(m.busySince) > flagLag {
			m.setFlag(false)
		}
		m.pause = min(max(busyLook, 2*m.pause), slackLook)
		if len(m.running) >= m.limit {
			m.pause = slackLook
		}
		if s.HasReady {
			m.wake(false)
		}
	case s.HasReady:
		// Behind somebody's lock, in back-off, or new. Locks are let go of without a notification.
		m.setFlag(true)
		m.pause = min(max(firstLook, 2*m.pause), quietLook)
		m.wake(false)
	case !hadFlag:
		m.setFlag(true) // flagged looks again
		m.pause = 0
	case m.fence == nil || len(m.fence) > 0:
		m.narrowFence(writers)
		m.pause = min(max(firstLook, 2*m.pause), quietLook)
	}
	if resting := now.Before(m.restUntil); !resting && (s.HasReady || len(m.running) > 0 || hadFlag && len(m.fence) > 0) {
		m.lookBy(now.Add(max(m.pause, min(slowLook*now.Sub(began), longLook))))
	}
	if m.guard > 0 {
		m.lookBy(now.Add(slackLook))
	}
	if now.Before(m.retryAt) {
		m.lookBy(m.retryAt)
	}
	if s.DueIn != nil && !s.HasReady {
		m.lookBy(now.Add(time.Duration(*s.DueIn * float64(time.Second))))
	}
}

// narrowFence strikes out the writers that have ended. Those that come later see the flag.
func (m *monitor) narrowFence(writers []string) {
	if m.fence == nil {
		m.fence = make(map[string]bool, len(writers))
		for _, w := range writers {
			m.fence[w] = true
		}
		return
	}
	still := make(map[string]bool, len(m.fence))
	for _, w := range writers {
		if m.fence[w] {
			still[w] = true
		}
	}
	m.fence = still
}

// setFlag asks for the waiting flag to go up or down. The caller holds the mutex.
func (m *monitor) setFlag(up bool) {
	if m.wantFlag == up {
		return
	}
	m.wantFlag = up
	if !up {
		m.flagUp, m.fence = false, nil
	}
	m.a.listener.poke()
}

// flagged says that the flag has gone up, or been lost.
func (m *monitor) flagged(up bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fence = nil
	m.flagUp = up && m.wantFlag
	m.wantFlag = m.flagUp
	if m.flagUp {
		if !m.ready {
			m.pause = 0
		}
		m.lookBy(time.Now())
	}
}

// nextLook is when the scheduler is to look; zero: not before the next sweep.
func (m *monitor) nextLook() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lookAt
}

// takeLook reports whether it is time for a look, which then is to be taken, and whether the flag is up.
func (m *monitor) takeLook(now time.Time, isSweep bool) (hadFlag, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if due = isSweep || !m.lookAt.IsZero() && !now.Before(m.lookAt); due {
		m.lookAt = time.Time{}
	}
	return m.flagUp, due
}

// pids returns the backends of the readers.
func (m *monitor) pids() (list []uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.running {
		if r.pid != 0 {
			list = append(list, r.pid)
		}
	}
	return list
}

// currentRunner returns what serves the queue now.
func (m *monitor) currentRunner() runner {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runner
}

// tidy gives up connections that have not been used for some time.
func (m *monitor) tidy(now time.Time) {
	if r := m.currentRunner(); r != nil {
		r.tidy(now)
	}
}

// close ends the monitor: no reader starts any more, those that run end after their step. It reports whether some still
// run.
func (m *monitor) close() (isBusy bool) {
	m.mu.Lock()
	r := m.runner
	m.runner = nil
	m.wantFlag, m.flagUp = false, false
	isBusy = len(m.running) > 0
	m.mu.Unlock()
	if r != nil {
		r.close()
	}
	return isBusy
}

// flagState is what the listener has to bring together.
func (m *monitor) flagState() (want, up bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wantFlag, m.flagUp
}

// state is for show. The caller holds the mutex.
func (m *monitor) state() string {
	switch {
	case m.guard > 0 || m.failures > 0 || m.isDown:
		return stateNotified
	case len(m.running) > 0 && m.productive:
		return stateReceiving
	case len(m.running) > 0 || m.ready:
		return stateNotified
	default:
		return stateInactive
	}
}

// backoff is the pause after the nth failure in a row.
func backoff(n int) time.Duration {
	return jitter(min(100*time.Millisecond<<min(n-1, 10), 30*time.Second))
}

// jitter spreads d over ±20 %, so that what failed or looked together does not do so again.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// wait sleeps for d or until there is a poke, and reports false when ctx ends.
func wait(ctx context.Context, d time.Duration, poke <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-poke:
	}
	return ctx.Err() == nil
}

// bell is a poke that is not lost and does not pile up.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
