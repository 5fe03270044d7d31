// Package model compares the broker with a model of it: random steps of several sessions, all verbs, commits and
// rollbacks, savepoints, kills, and a clock that the test moves, are done in a small model in memory and in a database.
// The model says what each statement returns, with which code it fails, whom it waits for, and what every view shows
// afterwards, to everybody and inside of the transaction; where the broker may choose, it says among what.
//
// The driver sends one statement at a time. One that must wait does so, proven by pg_blocking_pids, until whoever it
// waits for is done. So a script has one outcome, but for a few races, which are passed over: two statements that wait
// for one transaction, and what looks at locks that a third takes and gives back while it polls.
//
// A failure is shrunk to a short script, which is printed and can be replayed:
//
//	go test ./internal/model -run TestReplay -replay /tmp/script
//
// The rules are those of Service Broker; what locks what is the table in sql/README.md.
package model

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var replayFile = flag.String("replay", "", "script for TestReplay")

const (
	gateTime   = 2 * time.Minute
	shrinkTime = 2 * time.Minute
	length     = 150 // steps of a run
	workers    = 2

	shortEnough = 8 // steps that what is found in a sabotaged broker is shrunk to
)

// TestModel is the gate's share: several seeds, for two minutes.
func TestModel(t *testing.T) {
	t.Parallel()
	explore(t, gateTime)
}

// TestSoakModel runs for SBROKER_SOAK, as make soak sets it.
func TestSoakModel(t *testing.T) {
	text := os.Getenv("SBROKER_SOAK")
	if text == "" {
		t.Skip("SBROKER_SOAK holds no duration; TestModel does the same for a shorter time")
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	explore(t, d)
}

// TestReplay runs what has failed once, or the script that a failure has printed.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.script")
	if *replayFile != "" {
		files = []string{*replayFile}
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts (%v)", err)
	}
	b := newBench(t, "")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseScript(string(raw))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if again, err := parseScript(s.String()); err != nil || again.String() != s.String() {
			t.Errorf("%s written and read again: %v\n%s", file, err, again)
		}
		o := b.replay(s)
		switch {
		case o.failed != nil:
			t.Errorf("%s: %v", file, o.failed)
		case o.unsure != "":
			t.Errorf("%s: given up: %s", file, o.unsure)
		case len(o.script.steps) != len(s.steps):
			t.Errorf("%s: only these steps could be taken:\n%s", file, o.script)
		}
	}
}

// explore does runs until the time is over. SBROKER_SEED replays the run of a seed.
func explore(t *testing.T, d time.Duration) {
	b := newBench(t, "")
	if text := os.Getenv("SBROKER_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		b.report(seed, b.random(seed, length))
		return
	}
	first := uint64(time.Now().UnixNano())
	t.Logf("seeds from SBROKER_SEED=%d on", first)
	deadline := time.Now().Add(d)
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		counts = map[string]int{}
		seeds  = rand.New(rand.NewPCG(first, 0))
	)
	for range workers {
		wg.Go(func() {
			for time.Now().Before(deadline) && !t.Failed() {
				mu.Lock()
				seed := seeds.Uint64()
				mu.Unlock()
				o := b.random(seed, length)
				mu.Lock()
				counts["runs"]++
				if o.unsure != "" {
					counts["given up: "+o.unsure]++
				}
				for what, n := range o.counts {
					counts[what] += n
				}
				mu.Unlock()
				if o.failed != nil {
					b.report(seed, o)
				}
			}
		})
	}
	wg.Wait()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%s %d", what, counts[what]))
	}
	t.Log(strings.Join(lines, ", "))
}

// report shrinks a failure and prints it.
func (b *bench) report(seed uint64, o outcome) {
	if o.failed == nil {
		return
	}
	short := b.shrink(o, time.Now().Add(shrinkTime))
	b.t.Errorf("SBROKER_SEED=%d: %v\nshrunk from %d steps to %d: %v\n\n%s\n", seed, o.failed, len(o.script.steps),
		len(short.script.steps), short.failed, short.script)
}

// shrink leaves steps out of a failing script as long as what is left fails in the same way, each time in a fresh
// database: all of a session, all of a dialog, then smaller and smaller parts (delta debugging).
func (b *bench) shrink(o outcome, deadline time.Time) outcome {
	without := func(isOut func(i int, st step) bool) bool {
		var steps []step
		for i, st := range o.script.steps {
			if !isOut(i, st) {
				steps = append(steps, st)
			}
		}
		if len(steps) == len(o.script.steps) || time.Now().After(deadline) {
			return false
		}
		tried := b.replay(script{o.script.config, steps})
		if tried.failed == nil || tried.failed.kind != o.failed.kind || len(tried.script.steps) >= len(o.script.steps) {
			return false
		}
		o = tried
		return true
	}

	var dialogs []string
	for _, st := range o.script.steps {
		if name := st.get("as"); name != "" {
			dialogs = append(dialogs, name)
		}
	}
	for i := range sessions {
		without(func(_ int, st step) bool { return st.who == fmt.Sprintf("s%d", i+1) })
	}
	for _, name := range dialogs {
		without(func(_ int, st step) bool { return st.isAbout(name) })
	}
	for size := (len(o.script.steps) + 1) / 2; size > 0; {
		isShorter := false
		for from := 0; from < len(o.script.steps) && time.Now().Before(deadline); {
			if without(func(i int, _ step) bool { return i >= from && i < from+size }) {
				isShorter = true
			} else {
				from += size
			}
		}
		switch {
		case size > 1:
			size = (size + 1) / 2
		case !isShorter || time.Now().After(deadline):
			size = 0
		}
	}
	return o
}

// sabotageLocks lets receives and everything else that passes by locked rows take them all the same.
const sabotageLocks = `
do $$
declare
  f text;
  made integer := 0;
begin
  for f in
    select replace(pg_get_functiondef(p.oid), 'for no key update skip locked', '')
      from pg_proc as p
     where p.pronamespace = 'sb_internal'::regnamespace
       and p.prosrc like '%conversation_group as g%for no key update skip locked%'
  loop
    execute f;
    made := made + 1;
  end loop;
  if made = 0 then
    raise exception 'nothing to sabotage';
  end if;
end $$;`

// A broker with a broken rule must be found out, and the script be short.
func TestSabotage(t *testing.T) {
	t.Parallel()
	drop := func(table, when, result string) string {
		return fmt.Sprintf(`
create function public.sabotage() returns trigger language plpgsql as 'begin return %s; end';
create trigger sabotage before %s execute function public.sabotage();`, result, fmt.Sprintf(when, table))
	}
	for name, broken := range map[string]struct {
		sql   string
		kinds []string
	}{
		"a message is lost": {
			drop("sb_internal.message", "insert on %s for each row when (new.message_sequence_number = 2)", "null"),
			[]string{"view", "result"},
		},
		"a receive ignores the lock of a group": {sabotageLocks, []string{"wait", "result", "error"}},
		"a timer outlives its conversation": {
			drop("sb_internal.due", "delete on %s for each row when (not old.is_lifetime)", "null"),
			[]string{"left over", "view", "result"},
		},
		"an endpoint stays in error": {
			drop("sb_internal.endpoint", "update of state on %s for each row when (new.state = 'ER')", "old"),
			[]string{"view", "result", "error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, broken.sql)
			for seed := uint64(1); seed <= 40; seed++ {
				o := b.random(seed, length)
				if o.failed == nil {
					continue
				}
				short := b.shrink(o, time.Now().Add(2*shrinkTime))
				t.Logf("seed %d: %d steps, shrunk to %d: %v\n%s", seed, len(o.script.steps), len(short.script.steps), short.failed, short.script)
				if !slices.Contains(broken.kinds, short.failed.kind) {
					t.Errorf("found as %q", short.failed.kind)
				}
				if n := len(short.script.steps); n > shortEnough {
					t.Errorf("shrunk to %d steps only", n)
				}
				again, err := parseScript(short.script.String())
				if err != nil {
					t.Fatal(err)
				}
				if f := b.replay(again).failed; f == nil || f.kind != short.failed.kind {
					t.Errorf("replayed: %v", f)
				}
				if f := newBench(t, "").replay(again).failed; f != nil {
					t.Errorf("the broker itself fails: %v", f)
				}
				return
			}
			t.Error("not found")
		})
	}
}
