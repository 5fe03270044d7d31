// Command bench measures the broker against plain tables and against other queues on PostgreSQL, on a private server,
// and prints one table. README.md says how to run it, docs/performance.md what is measured.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	run, rivals  []string
	majors, sync []string
	rounds       int
	seconds      time.Duration // of one measurement of a rate
	scale        float64       // of numbers of messages
	soak         time.Duration
	clients      int
	dir          string // where servers keep their data
	root         string // of the repository
	sqlFile      string
	pgmqURL      string
	write        string
	install      bool
	list         bool
}

func main() {
	s := &settings{}
	run := flag.String("run", "", "workloads, such as P1,P4 (default all)")
	rivals := flag.String("rivals", strings.Join(allRivals, ","), "whom to compare with, where installed")
	majors := flag.String("pg", "15", "major versions of PostgreSQL")
	sync := flag.String("sync", "off", "settings of synchronous_commit: off, on or off,on")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds, whose median counts")
	flag.DurationVar(&s.seconds, "seconds", 2*time.Second, "how long one rate is measured")
	flag.Float64Var(&s.scale, "scale", 1, "factor of all numbers of messages")
	flag.DurationVar(&s.soak, "soak", 5*time.Minute, "how long P16 goes on")
	flag.IntVar(&s.clients, "clients", 8, "clients, where the workload leaves it open")
	flag.StringVar(&s.dir, "dir", os.TempDir(), "where the servers keep their data")
	flag.StringVar(&s.root, "root", filepath.Join("..", ".."), "the repository")
	flag.StringVar(&s.sqlFile, "sql", "", "another version of sql/sbroker.sql to measure")
	flag.StringVar(&s.pgmqURL, "pgmq", os.Getenv("PGMQ_URL"), "URL of a database with the extension pgmq")
	flag.StringVar(&s.write, "write", "", "write the results into this page, between its markers")
	flag.BoolVar(&s.install, "install", false, "install the rivals that come from npm, and nothing else")
	flag.BoolVar(&s.list, "list", false, "list the workloads, and nothing else")
	flag.Parse()
	s.run, s.rivals, s.majors, s.sync = list(*run), list(*rivals), list(*majors), list(*sync)
	s.sqlFile = cmp.Or(s.sqlFile, filepath.Join(s.root, "sql", "sbroker.sql"))

	// A floor that is missed shows in the table. Only what could not be measured at all is a failure.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := s.main(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// list splits at commas.
func list(s string) []string {
	return slices.DeleteFunc(strings.Split(s, ","), func(s string) bool { return s == "" })
}

// n scales a number of messages.
func (s *settings) n(quantity int) int { return max(1, int(float64(quantity)*s.scale)) }

func (s *settings) main(ctx context.Context) error {
	if s.rounds < 1 || s.seconds <= 0 || s.scale <= 0 || s.clients < 1 {
		return errors.New("-rounds, -seconds, -scale and -clients have to be positive")
	}
	chosen, err := s.workloads()
	if err != nil {
		return err
	}
	switch {
	case s.list:
		for _, w := range chosen {
			fmt.Printf("%-4s %s\n", w.id, w.about)
		}
		return nil
	case s.install:
		return installNode(ctx)
	}
	var reports []*report
	for _, major := range s.majors {
		for _, sync := range s.sync {
			r, err := s.measure(ctx, major, sync, chosen)
			if r != nil { // what was measured before something failed
				reports = append(reports, r)
			}
			if err != nil {
				return errors.Join(err, s.publish(reports))
			}
		}
	}
	return s.publish(reports)
}

// workloads returns those that were chosen.
func (s *settings) workloads() ([]*workload, error) {
	if len(s.run) == 0 {
		return allWorkloads, nil
	}
	var chosen []*workload
	for _, id := range s.run {
		i := slices.IndexFunc(allWorkloads, func(w *workload) bool { return strings.EqualFold(w.id, id) })
		if i < 0 {
			return nil, fmt.Errorf("there is no workload %s: see -list", id)
		}
		chosen = append(chosen, allWorkloads[i])
	}
	return chosen, nil
}

// measure runs the workloads on one server.
func (s *settings) measure(ctx context.Context, major, sync string, chosen []*workload) (_ *report, err error) {
	server, err := s.start(ctx, major, sync)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	r := &report{
		major: major, sync: sync, at: time.Now(), machine: machine(), commit: s.commit(ctx),
		settings: server.describe(), command: strings.Join(append([]string{"go run ."}, os.Args[1:]...), " "),
	}
	fmt.Printf("PostgreSQL %s, synchronous_commit %s, %s\n", server.version, sync, r.machine)
	r.rivals = server.findRivals(ctx)
	for _, w := range chosen {
		began := time.Now()
		fmt.Printf("%s %s\n", w.id, w.about)
		rounds, err := server.runWorkload(ctx, w)
		if err != nil && ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil {
			// The others are worth having.
			fmt.Printf("  failed: %v\n", err)
			first, _, _ := strings.Cut(err.Error(), "\n")
			r.failures = append(r.failures, fmt.Sprintf("%s failed: %s", w.id, first))
		}
		if len(rounds) > 0 {
			r.results = append(r.results, result{w, rounds})
			fmt.Printf("  %.0f s\n", time.Since(began).Seconds())
		}
	}
	return r, nil
}

// publish prints the tables, and writes them.
func (s *settings) publish(reports []*report) error {
	for _, r := range reports {
		r.print(os.Stdout)
	}
	if s.write == "" || len(reports) == 0 {
		return nil
	}
	page, err := os.ReadFile(s.write)
	if err != nil {
		return err
	}
	for _, r := range reports {
		if page, err = r.writeInto(page); err != nil {
			return fmt.Errorf("%s: %w", s.write, err)
		}
	}
	return os.WriteFile(s.write, page, 0o644)
}

// machine describes the processor and the memory.
func machine() string {
	parts := []string{fmt.Sprintf("%d × %s", runtime.NumCPU(), cmp.Or(procValue("/proc/cpuinfo", "model name"), runtime.GOARCH))}
	if kb := procNumber("/proc/meminfo", "MemTotal"); kb > 0 {
		parts = append(parts, fmt.Sprintf("%.0f GB", kb/1e6))
	}
	parts = append(parts, runtime.GOOS)
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		parts = append(parts, "load at the start "+strings.Fields(string(load))[0])
	}
	return strings.Join(parts, ", ")
}

// commit names what is measured.
func (s *settings) commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "-C", s.root, "describe", "--always", "--dirty", "--tags").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// note tells what is going on, in a line below the workload's.
func note(w io.Writer, format string, args ...any) { fmt.Fprintf(w, "  "+format+"\n", args...) }
