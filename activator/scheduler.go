package activator

import (
	"context"
	"sync"
	"time"
)

// scheduler looks at queues when nothing tells that there is work: when a timer or a lifetime falls due,
// at short intervals while something may turn up without a notification, and at all of them every
// PollInterval. It is also what reads the plan.
type scheduler struct {
	a    *Activator
	bell bell

	mu      sync.Mutex
	planAt  time.Time // when the plan is read next
	sweepAt time.Time // when all queues are looked at next
}

// poke makes the scheduler look at the monitors' times again.
func (s *scheduler) poke() { s.bell.ring() }

// replan makes the scheduler read the plan now.
func (s *scheduler) replan() {
	s.mu.Lock()
	s.planAt = time.Time{}
	s.mu.Unlock()
	s.poke()
}

// sweep makes the scheduler look at everything now.
func (s *scheduler) sweep() {
	s.mu.Lock()
	s.planAt, s.sweepAt = time.Time{}, time.Time{}
	s.mu.Unlock()
	s.poke()
}

// run works until ctx ends. Errors only make it slower.
func (s *scheduler) run(ctx context.Context) {
	failures := 0
	for {
		if err := s.tick(ctx); err != nil && ctx.Err() == nil {
			s.a.outage(err)
			failures++
			if !wait(ctx, min(backoff(failures), jitter(maxReconnect)), nil) {
				return
			}
			continue
		}
		failures = 0
		if !wait(ctx, time.Until(s.next()), s.bell) {
			return
		}
	}
}

// next is when there is something to do.
func (s *scheduler) next() time.Time {
	s.mu.Lock()
	at := s.sweepAt
	if s.planAt.Before(at) {
		at = s.planAt
	}
	s.mu.Unlock()
	for _, m := range s.a.allMonitors() {
		if t := m.nextLook(); !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	return at
}

// tick does what is to be done now.
func (s *scheduler) tick(ctx context.Context) error {
	now := time.Now()
	s.mu.Lock()
	isSweep := !now.Before(s.sweepAt)
	isPlan := isSweep || !now.Before(s.planAt)
	if isSweep {
		s.sweepAt = now.Add(jitter(s.a.cfg.PollInterval))
	}
	if isPlan {
		s.planAt = s.sweepAt
	}
	s.mu.Unlock()

	if isPlan {
		plan, err := s.a.plan(ctx)
		if err != nil {
			s.sweep() // again, after a pause
			return err
		}
		if surplus := s.a.apply(plan); surplus {
			s.mu.Lock()
			s.planAt = minTime(s.planAt, now.Add(slackLook))
			s.mu.Unlock()
		}
	}
	var (
		queues  []int32
		looking = map[int32]bool{} // whether the waiting flag was up before the look
	)
	for _, m := range s.a.allMonitors() {
		if isSweep {
			m.tidy(now)
		}
		// Looks that are almost due go with those that are, and stay together from then on.
		if hadFlag, due := m.takeLook(now.Add(lookSlack), isSweep); due {
			queues = append(queues, m.id)
			looking[m.id] = hadFlag
		}
	}
	if len(queues) == 0 {
		if isPlan {
			s.a.health.looked(now) // there are none
		}
		return nil
	}
	began := time.Now()
	scans, writers, err := s.a.scan(ctx, queues)
	if err != nil {
		s.sweep()
		return err
	}
	s.a.health.looked(began)
	s.a.cfg.Observer.Observe(Polled{Queues: len(queues), Sweep: isSweep})
	for _, sc := range scans {
		if m := s.a.monitor(sc.ID); m != nil {
			m.looked(sc, writers, looking[sc.ID], began)
		}
	}
	if isSweep {
		s.a.recovered()
		s.a.reporter.poke()
	}
	return nil
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
