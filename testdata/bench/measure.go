package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// body is what every message carries, unless said otherwise: 200 bytes.
var body = strings.Repeat("b", 200)

// pgbenchOptions say how a script is run.
type pgbenchOptions struct {
	simple  bool   // protocol; else prepared
	clients int    // 0: those of the flag
	url     string // empty: the workload's database
	sync    string // synchronous_commit, where it differs from the server's
	foreign bool   // the server is not ours: no CPU figures
}

var (
	processed = regexp.MustCompile(`transactions actually processed: (\d+)`)
	variable  = regexp.MustCompile(`:(\w+)::`)
)

// runScript runs one of the scripts with pgbench and returns transactions per second.
func (b *bench) runScript(ctx context.Context, script string, o pgbenchOptions) (figure, error) {
	text, err := scripts.ReadFile("sql/" + script + ".sql")
	if err != nil {
		return figure{}, err
	}
	protocol := "prepared"
	if o.simple {
		// There a variable is text that is put in place.
		protocol, text = "simple", variable.ReplaceAll(text, []byte(`':$1'::`))
	}
	file := filepath.Join(b.dir, script+".sql")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return figure{}, err
	}
	clients, url := b.clients, b.url
	if o.clients != 0 {
		clients = o.clients
	}
	if o.url != "" {
		url = o.url
	}
	if !o.foreign {
		if err := b.checkpoint(ctx); err != nil {
			return figure{}, err
		}
	}
	warmUp := 1 + clients/16
	length := float64(warmUp) + max(1, math.Round(b.seconds.Seconds()))
	cmd := exec.CommandContext(ctx, b.pgbench, "-n", "-P", "1", "-M", protocol,
		"-c", strconv.Itoa(clients), "-j", strconv.Itoa(jobs(clients)),
		"-T", strconv.Itoa(int(length)),
		"-D", "left=0", "-D", "body="+body, "-f", file, url)
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c client_min_messages=warning")
	if o.sync != "" {
		cmd.Env[len(cmd.Env)-1] += " -c synchronous_commit=" + o.sync
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return figure{}, err
	}
	if err := cmd.Start(); err != nil {
		return figure{}, err
	}
	// It tells each second how it goes: a session's first calls, which compile functions and make plans, do not count.
	var skipped, began, before float64
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		var at, rate float64
		if _, err := fmt.Sscanf(lines.Text(), "progress: %f s, %f tps", &at, &rate); err != nil {
			out.WriteString(lines.Text() + "\n")
		} else if began < float64(warmUp)-0.5 { // a busy machine leaves some out
			skipped += rate * (at - began)
			began, before = at, b.cpu()
		}
	}
	if err := cmd.Wait(); err != nil {
		return figure{}, fmt.Errorf("pgbench %s: %w\n%s", script, err, out.Bytes())
	}
	after := b.cpu()
	total := processed.FindSubmatch(out.Bytes())
	if total == nil {
		return figure{}, fmt.Errorf("pgbench %s said\n%s", script, out.Bytes())
	}
	if b.processed, err = strconv.ParseFloat(string(total[1]), 64); err != nil {
		return figure{}, err
	}
	done := b.processed - skipped
	if done < 1 || began >= length {
		return figure{}, fmt.Errorf("pgbench %s did nothing after the first %.0f s\n%s", script, began, out.Bytes())
	}
	if o.foreign {
		after = math.NaN()
	}
	return figure{done / (length - began), (after - before) / done * 1e6}, nil
}

// errDry ends a load before its time: there is nothing left.
var errDry = errors.New("nothing left")

// loaded is what came of a load.
type loaded struct {
	figure
	n       int
	elapsed time.Duration
	at      []time.Duration // when each call that did something ended, since the start, in order
}

// load calls do again and again from so many goroutines, for so long, and returns how often it was done a second.
// do returns how many it has done. The first call that meets errDry ends all. Each worker begins with so many calls
// that are not counted.
func (b *bench) load(ctx context.Context, workers, warmUp int, d time.Duration, do func(ctx context.Context, worker int) (int, error)) (loaded, error) {
	if err := b.checkpoint(ctx); err != nil {
		return loaded{}, err
	}
	warm, warmCtx := errgroup.WithContext(ctx)
	for worker := range workers {
		warm.Go(func() error {
			for range warmUp {
				if _, err := do(warmCtx, worker); err != nil && !errors.Is(err, errDry) {
					return err
				}
			}
			return nil
		})
	}
	if err := warm.Wait(); err != nil {
		return loaded{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		l     loaded
	)
	before, began := b.cpu(), time.Now()
	for worker := range workers {
		group.Go(func() {
			var at []time.Duration
			n := 0
			for time.Since(began) < d && ctx.Err() == nil {
				did, err := do(ctx, worker)
				if err != nil && (ctx.Err() == nil || errors.Is(err, errDry)) {
					cancel(err)
				}
				if err != nil {
					break
				}
				if did > 0 {
					n += did
					at = append(at, time.Since(began))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			l.n += n
			l.at = append(l.at, at...)
		})
	}
	group.Wait()
	l.elapsed = time.Since(began)
	used := b.cpu() - before
	if err := context.Cause(ctx); err != nil && !errors.Is(err, errDry) {
		return loaded{}, err
	}
	slices.Sort(l.at)
	if l.n == 0 {
		return loaded{}, errors.New("nothing was done at all")
	}
	l.figure = figure{float64(l.n) / l.elapsed.Seconds(), used / float64(l.n) * 1e6}
	return l, nil
}

// micros calls one of the procedures that time themselves, and returns what their calls took.
func micros(ctx context.Context, conn *pgx.Conn, call string, args ...any) ([]float64, error) {
	var took []float64
	if err := conn.QueryRow(ctx, call, args...).Scan(&took); err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	return took, nil
}

// percentile of values, which need not be in order.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	values = slices.Sorted(slices.Values(values))
	return values[min(len(values)-1, int(p/100*float64(len(values))))]
}

// median is the mean of the two in the middle when their number is even. NaN is left out.
func median(values []float64) float64 {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// milliseconds of durations.
func milliseconds(durations []time.Duration) []float64 {
	all := make([]float64, 0, len(durations))
	for _, d := range durations {
		all = append(all, float64(d.Nanoseconds())/1e6)
	}
	return all
}

// tenths compares the rates of the last and of the first tenth of what was done.
func (l loaded) tenths() float64 {
	n := len(l.at) / 10
	if n < 2 {
		return math.NaN()
	}
	return float64(l.at[n-1]-l.at[0]) / float64(l.at[len(l.at)-1]-l.at[len(l.at)-n])
}

// lastToFirst compares the rates of the last and of the first tenth of calls that took so long. Medians, for a tenth
// may meet an interruption.
func lastToFirst(micros []float64) float64 {
	n := max(1, len(micros)/10)
	return median(micros[:n]) / median(micros[len(micros)-n:])
}
