//go:build linux

package proof

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A connection over which nothing comes any more is noticed within 10 s, made again, and everything is looked at: whether it is
// the one that listens or all of them, and without any polling.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(network *proxy){
		"listener half-open": func(network *proxy) { network.swallow(" listener") },
		"all half-open":      func(network *proxy) { network.swallow("") },
		"listener mute":      func(network *proxy) { network.silence(" listener") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			lanes := s.lanes(3)
			network := newProxy(t, s.url(s.login))
			p := start(t, network.url, "SBACTIVATOR_ACTIVATION_POLL_INTERVAL=1h")
			s.eventually("it listens", "select ("+listeners+") = 1")
			for _, l := range lanes {
				s.ask(l, time.Minute, "before")
			}
			lose(network)
			var group sync.WaitGroup
			for _, l := range lanes {
				group.Go(func() { s.ask(l, atMost(10*time.Second)+5*time.Second, "meanwhile") })
			}
			group.Wait()
			for _, l := range lanes {
				s.ask(l, atMost(5*time.Second), "afterwards")
			}
			if text := p.log.String(); strings.Count(text, "level=WARN") > 2 || strings.Contains(text, "level=ERROR") {
				t.Errorf("the log is not quiet:\n%s", text)
			}
			p.stop()
		})
	}
}

// ask asks one question, the answer to which has to come within the limit.
func (s *stage) ask(l *lane, limit time.Duration, question string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	took, err := l.ask(ctx, 0, question)
	s.Logf("%s: answered after %v", question, took)
	if err != nil || took > limit {
		s.Errorf("%s: after %v: %v", question, took, err)
	}
}

// An outage of 10 s (of SBROKER_SOAK in TestSoakOutage) that three activators wait out: they try again neither all at the same
// time nor too often, say little about it, and are at work again within 5 s of its end.
func TestOutage(t *testing.T) {
	t.Parallel()
	outage(t, 10*time.Second)
}

// TestSoakOutage is TestOutage for SBROKER_SOAK.
func TestSoakOutage(t *testing.T) { outage(t, soak(t)) }

func outage(t *testing.T, d time.Duration) {
	s := newStage(t)
	lanes := s.lanes(3)
	network := newProxy(t, s.url(s.login))
	var activators []*process
	for range 3 {
		activators = append(activators, start(t, network.url))
	}
	s.eventually("all listen", "select ("+listeners+") = 3")
	for _, l := range lanes {
		s.ask(l, time.Minute, "before")
	}
	lines := func() (n int) {
		for _, p := range activators {
			n += strings.Count(p.log.String(), "\n")
		}
		return n
	}
	before := lines()
	network.attempts.Store(0)
	network.down.Store(true)
	network.cut()
	// What is sent meanwhile waits.
	answers := make(chan error, len(lanes))
	for _, l := range lanes {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), d+2*time.Minute)
			defer cancel()
			_, err := l.ask(ctx, 0, "meanwhile")
			answers <- err
		}()
	}
	var perSecond []int64
	for last, end := int64(0), time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Second)
		n := network.attempts.Load()
		perSecond = append(perSecond, n-last)
		last = n
	}
	attempts, said := network.attempts.Load(), lines()-before
	network.down.Store(false)
	began := time.Now()
	for range lanes {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	took := time.Since(began)
	s.eventually("all listen again", "select ("+listeners+") = 3")
	listening := time.Since(began)
	t.Logf("%d attempts to connect in %v, per second %v; %d lines in the logs; back at work after %v, listening after %v",
		attempts, d, perSecond, said, took, listening)
	if took > atMost(5*time.Second) || listening > atMost(5*time.Second) {
		t.Error("that took too long")
	}
	// For each a scheduler, a listener and a forwarder, which try at growing intervals up to 2 s.
	minutes := int64(d/time.Minute) + 1
	if limit := int64(3 * (15 + 1.5*d.Seconds())); attempts > limit || attempts < 6 {
		t.Errorf("%d attempts to connect, want at most %d", attempts, limit)
	}
	if limit := 3 * 3 * int(minutes); said > limit {
		t.Errorf("%d lines in the logs, want at most %d", said, limit)
	}
	for _, p := range activators {
		p.stop()
	}
}

// When the server that an activator works on becomes read-only, and when it dies, the activator goes to the one of the hosts in
// its URL that can be written to, with everything.
func TestFailover(t *testing.T) {
	t.Parallel()
	var (
		clusters [2]*cluster
		stages   [2]*stage
		hosts    []string
	)
	readOnly := func(i int, is string) {
		t.Helper()
		super := clusters[i].connect()
		for _, sql := range []string{
			"set default_transaction_read_only = off", "alter system set default_transaction_read_only = " + is, "select pg_reload_conf()",
		} {
			if _, err := super.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range clusters {
		clusters[i], stages[i] = newCluster(t)
		stages[i].exec(openShop)
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", clusters[i].port))
	}
	readOnly(1, "on")
	u, err := url.Parse(stages[0].url(stages[0].login))
	if err != nil {
		t.Fatal(err)
	}
	u.Host = strings.Join(hosts, ",")
	u.RawQuery = "sslmode=disable&target_session_attrs=read-write"
	dir := t.TempDir()
	p := start(t, u.String(), clerkSettings(t, dir, 2, "bench"), "SBACTIVATOR_ACTIVATION_POLL_INTERVAL=1h", "SBACTIVATOR_ACTIVATION_IDLE_TIMEOUT=1h")
	work := func(i int, limit time.Duration) {
		t.Helper()
		s := stages[i]
		began := time.Now()
		for time.Since(began) < time.Minute { // until the reload has reached the pool
			_, err := s.pool.Exec(t.Context(), `
with sent as (
  insert into public.sent (handle, n)
  select sb.begin_dialog('client', service), 1 from unnest(array['desk', 'bench']) as service, generate_series(1, 5)
  returning handle, n)
select sb.send(handle, 'DEFAULT', handle || ' ' || n) from sent`)
			if err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		began = time.Now()
		s.within(time.Minute, "all is handled", `
select count(*) > 0 and count(*) = (select count(*) from public.ledger where queue in ('desk', 'client')) from public.sent`)
		took := time.Since(began)
		t.Logf("handled after %v", took)
		if took > limit {
			t.Errorf("handled after %v, more than %v", took, limit)
		}
		(&fire{stage: s}).checkBooks()
	}
	stages[0].eventually("it listens", "select ("+listeners+") = 1")
	work(0, atMost(5*time.Second))

	// A demotion, of which the connections notice nothing, and a promotion.
	readOnly(0, "on")
	readOnly(1, "off")
	work(1, atMost(10*time.Second)) // the heartbeat finds it out
	stages[0].within(atMost(10*time.Second), "the demoted server is left", `
select count(*) = 0 from pg_stat_activity where datname = current_database() and application_name like 'sbactivator %'`)

	// The other way round, by a death.
	readOnly(0, "off")
	clusters[1].signal(syscall.SIGQUIT)
	clusters[1].stop()
	work(0, atMost(5*time.Second))
	if text := p.log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("log:\n%s", text)
	}
	p.stop()
	clusters[1].start() // for the pool to close
	stages[0].noneLeft(dir)
}
