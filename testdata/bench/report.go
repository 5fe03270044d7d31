package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// Who is measured. The columns of the table.
const (
	ours     = "sbroker"
	bare     = "bare SQL"
	pgq      = "PgQ"
	river    = "River"
	graphile = "graphile-worker"
	pgboss   = "pg-boss"
	pgmq     = "pgmq"
)

var (
	allRivals  = []string{pgq, river, graphile, pgboss, pgmq}
	allColumns = append([]string{ours, bare}, allRivals...)
)

// figure is one number. cpu is the processor time of the server behind each unit, in µs; NaN when it says nothing.
type figure struct{ value, cpu float64 }

// plain is a figure without processor time.
func plain(value float64) figure { return figure{value, math.NaN()} }

// cell says whose figure, in which line of a workload.
type cell struct{ line, who string }

// figures are the results of one round.
type figures map[cell]figure

func (f figures) set(line, who string, value figure) { f[cell{line, who}] = value }

// log prints a round in a few lines.
func (f figures) log(w io.Writer, round int) {
	var parts []string
	for c, v := range f {
		parts = append(parts, fmt.Sprintf("%s, %s: %s", c.line, c.who, v))
	}
	slices.Sort(parts)
	note(w, "round %d: %s", round, strings.Join(parts, "; "))
}

// workload is one row of what is promised, measured in rounds on a database of its own.
type workload struct {
	id, about string
	lines     []line
	once      bool // one round is enough, because it takes long and compares what is within it
	prepare   func(ctx context.Context, b *bench) (func(ctx context.Context, f figures) error, error)
}

// line is one quantity, measured for us and perhaps for others.
type line struct {
	name, unit string
	targets    []target
}

// target is what a line has to reach.
type target struct {
	// by is what our figure is divided by; nothing when the figure itself counts.
	by cell
	// floor is required, goal wished for; 0 is none. atMost turns both round.
	floor, goal float64
	atMost      bool
}

// of makes a target of a rate.
func of(line, who string, floor, goal float64) target {
	return target{by: cell{line, who}, floor: floor, goal: goal}
}

// below makes a target of the figure itself, or of one of two figures that had better be small.
func below(floor, goal float64) target { return target{floor: floor, goal: goal, atMost: true} }

// above makes a target of the figure itself.
func above(floor, goal float64) target { return target{floor: floor, goal: goal} }

// value returns the median of the rounds, once by the rate and once by processor time. The latter is turned so that more
// is better, too.
func (t target) value(l line, rounds []figures) (value, cpu float64) {
	var values, cpus []float64
	for _, f := range rounds {
		us, ok := f[cell{l.name, ours}]
		if !ok {
			continue
		}
		if t.by == (cell{}) {
			values = append(values, us.value)
			continue
		}
		if other, ok := f[t.by]; ok {
			values = append(values, us.value/other.value)
			cpus = append(cpus, other.cpu/us.cpu)
		}
	}
	return median(values), median(cpus)
}

// verdict says whether a target was reached.
func (t target) verdict(value float64) string {
	reached := func(limit float64) bool { return limit == 0 || (value >= limit) != t.atMost || value == limit }
	switch {
	case math.IsNaN(value) || t.floor == 0 && t.goal == 0:
		return ""
	case !reached(t.floor):
		return "FLOOR MISSED"
	case !reached(t.goal):
		return "goal missed"
	default:
		return "ok"
	}
}

// limit writes a floor or goal.
func (t target) limit(value float64) string {
	switch {
	case value == 0:
		return ""
	case t.atMost:
		return "≤ " + number(value)
	default:
		return "≥ " + number(value)
	}
}

type result struct {
	*workload
	rounds []figures
}

// report is what was measured on one server.
type report struct {
	major, sync       string
	at                time.Time
	machine, commit   string
	settings, command string
	rivals            []string // what is installed, and what is not
	results           []result
	failures          []string
}

var header = []string{
	"", "what", "unit", ours, bare, pgq, river, graphile, pgboss, pgmq, "ratio", "floor", "goal", "", "measured",
}

// rows returns the table without its header. A line with several targets goes on in rows that have only those.
func (r *report) rows() [][]string {
	var rows [][]string
	measured := r.at.Format("2006-01-02") + " " + r.commit
	for _, result := range r.results {
		for _, l := range result.lines {
			row := []string{result.id, l.name, l.unit}
			for _, who := range allColumns {
				row = append(row, medianFigure(result.rounds, cell{l.name, who}).String())
			}
			targets := slices.DeleteFunc(slices.Clone(l.targets), func(t target) bool {
				value, _ := t.value(l, result.rounds)
				return math.IsNaN(value)
			})
			if len(targets) == 0 {
				rows = append(rows, append(row, "", "", "", "", measured))
			}
			for i, t := range targets {
				if i > 0 {
					row = append([]string{result.id}, make([]string, 2+len(allColumns))...)
				}
				value, cpu := t.value(l, result.rounds)
				ratio := ""
				if t.by != (cell{}) {
					ratio = number(value) + "× " + t.by.who
					if t.by.who == ours {
						ratio = number(value) + "× " + t.by.line
					}
					if !math.IsNaN(cpu) {
						ratio += fmt.Sprintf(" (CPU %s×)", number(cpu))
					}
				}
				rows = append(rows, append(row, ratio, t.limit(t.floor), t.limit(t.goal), t.verdict(value), measured))
			}
		}
	}
	return rows
}

// medianFigure over the rounds.
func medianFigure(rounds []figures, c cell) figure {
	var values, cpus []float64
	for _, f := range rounds {
		if v, ok := f[c]; ok {
			values, cpus = append(values, v.value), append(cpus, v.cpu)
		}
	}
	return figure{median(values), median(cpus)}
}

// String writes the figure with three digits, and the processor time behind it.
func (f figure) String() string {
	switch {
	case math.IsNaN(f.value):
		return ""
	case math.IsNaN(f.cpu):
		return number(f.value)
	default:
		return fmt.Sprintf("%s · %s µs", number(f.value), number(f.cpu))
	}
}

// number writes three significant digits, and commas.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	if digits > 0 {
		s := strconv.FormatFloat(v, 'f', digits, 64)
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	unit := math.Pow(10, float64(-digits))
	s := strconv.FormatFloat(math.Round(v/unit)*unit, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// print writes the table for a terminal, without the columns that are empty.
func (r *report) print(w io.Writer) {
	rows := append([][]string{header}, r.rows()...)
	if len(rows) == 1 {
		return
	}
	fmt.Fprintf(w, "\n%s\n%s\n", r.heading(), strings.Join(r.notes(), "\n"))
	empty := make([]bool, len(header))
	for i := range header {
		empty[i] = !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" })
	}
	empty[len(header)-1] = true // when: now
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		var cells []string
		for i, text := range row {
			if !empty[i] {
				cells = append(cells, text)
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush() // to a terminal
	missed := 0
	for _, row := range rows[1:] {
		if slices.Contains(row, "FLOOR MISSED") {
			missed++
		}
	}
	fmt.Fprintf(w, "floors missed: %d\n", missed)
}

func (r *report) heading() string {
	return fmt.Sprintf("PostgreSQL %s, synchronous_commit %s", r.major, r.sync)
}

// notes say how to read it, and where it comes from.
func (r *report) notes() []string {
	notes := []string{
		fmt.Sprintf("Last run: %s, %s, revision %s.", r.at.Format("2006-01-02 15:04"), r.machine, r.commit),
		fmt.Sprintf("Command: `%s`. Server: %s.", r.command, r.settings),
	}
	notes = append(notes, r.rivals...)
	return append(notes, r.failures...)
}

// writeInto puts the report into its section of a page. A run of some of the workloads replaces only their rows.
func (r *report) writeInto(page []byte) ([]byte, error) {
	const begin, end = "<!-- bench:begin -->\n", "<!-- bench:end -->\n"
	head, rest, ok := bytes.Cut(page, []byte(begin))
	old, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, errors.New("the page has no " + strings.TrimSpace(begin) + " … " + strings.TrimSpace(end))
	}
	title := "### " + r.heading() + "\n"
	var sections []string // of the other servers, and rows of ours that stay
	kept := map[string][]string{}
	for section := range strings.SplitSeq(string(old), "### ") {
		section = "### " + section
		switch {
		case strings.TrimSpace(section) == "###":
		case !strings.HasPrefix(section, title):
			sections = append(sections, section)
		default:
			for l := range strings.Lines(section) {
				if id, isRow := rowID(l); isRow {
					kept[id] = append(kept[id], l)
				}
			}
		}
	}
	for _, result := range r.results {
		delete(kept, result.id)
	}
	for _, row := range r.rows() {
		kept[row[0]] = append(kept[row[0]], markdown(row))
	}
	var section strings.Builder
	section.WriteString(title + "\n")
	for _, n := range r.notes() {
		section.WriteString("- " + n + "\n")
	}
	section.WriteString("\n" + markdown(header) + strings.Repeat("|---", len(header)) + "|\n")
	for _, w := range allWorkloads {
		section.WriteString(strings.Join(kept[w.id], ""))
	}
	section.WriteString("\n")
	sections = append(sections, section.String())
	slices.Sort(sections)
	return slices.Concat(head, []byte(begin), []byte(strings.Join(sections, "")), []byte(end), tail), nil
}

// rowID returns the workload of a row.
func rowID(l string) (string, bool) {
	cells := strings.SplitN(l, "|", 3)
	if len(cells) < 3 {
		return "", false
	}
	id := strings.TrimSpace(cells[1])
	return id, slices.ContainsFunc(allWorkloads, func(w *workload) bool { return w.id == id })
}

func markdown(row []string) string {
	var s strings.Builder
	for _, text := range row {
		s.WriteString("| " + text)
		if utf8.RuneCountInString(text) > 0 {
			s.WriteString(" ")
		}
	}
	return s.String() + "|\n"
}
