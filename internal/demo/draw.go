package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

const cleanupTimeout = 5 * time.Second

// The drawing: a lifeline for each service and, between two, one for their queues.
var lanes = []string{"employee", "reports", "expenses", "approvals", "approver"}

var headings = []string{"employee", "queues", "expenses", "queues", "approver"}

const (
	margin = 8  // before the first lifeline: the report's number
	gap    = 15 // between lifelines
)

// event is what expenses.trace tells.
type event struct {
	Report  string
	From    string
	To      string
	Message string
	Note    string
}

// Drawing draws what happens in the application as a sequence diagram, as it happens: each transaction tells
// what it has done by a notification, which arrives when it commits.
type Drawing struct {
	out   io.Writer
	color bool
	brief atomic.Bool // only the answers that arrive, and what time has done

	synced chan string
	stop   context.CancelFunc
	done   chan struct{}
	err    error // why it has ended
}

// lockedWriter lets the drawing and its commentary write each line whole.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// NewDrawing draws until Stop. To add text in the right place, call Sync first.
func NewDrawing(ctx context.Context, out io.Writer, site *Site) (*Drawing, error) {
	conn, err := pgx.Connect(ctx, site.URL(site.Owner))
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "listen expenses_trace"); err != nil {
		closeConn(conn)
		return nil, err
	}
	d := &Drawing{out: &lockedWriter{w: out}, color: isColorTerminal(out), synced: make(chan string, 1), done: make(chan struct{})}
	// Not ctx: what happens while everything ends is drawn too.
	drawing, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	go func() {
		defer close(d.done)
		defer closeConn(conn)
		if err := d.draw(drawing, conn); drawing.Err() == nil {
			d.err = fmt.Errorf("drawing: %w", err)
		}
	}()
	return d, nil
}

func (d *Drawing) draw(ctx context.Context, conn *pgx.Conn) error {
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		var e event
		if err := json.Unmarshal([]byte(n.Payload), &e); err != nil {
			return err
		}
		if e.From == "" {
			select {
			case d.synced <- e.Message:
			case <-ctx.Done():
				return ctx.Err()
			}
		} else if !d.brief.Load() || e.Message == "DialogTimer" || e.To == "employee" && e.Message != "EndDialog" {
			fmt.Fprintln(d.out, d.line(e))
		}
	}
}

// Stop ends the drawing and returns what has gone wrong with it.
func (d *Drawing) Stop() error {
	d.stop()
	<-d.done
	return d.err
}

// Sync returns when everything that was committed before the call has been drawn.
func (d *Drawing) Sync(ctx context.Context, conn *pgx.Conn) error {
	mark := fmt.Sprint(time.Now().UnixNano())
	if _, err := conn.Exec(ctx, `select pg_notify('expenses_trace', $1)`, `{"message":"`+mark+`"}`); err != nil {
		return err
	}
	for {
		select {
		case got := <-d.synced:
			if got == mark {
				return nil
			}
		case <-d.done:
			return d.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Lifelines draws the names of the lifelines.
func (d *Drawing) Lifelines() {
	names, bars := []byte(strings.Repeat(" ", margin+gap*len(lanes))), d.bars()
	for i, name := range headings {
		copy(names[margin+i*gap-min(margin, len(name)/2):], name)
	}
	fmt.Fprintf(d.out, "\n%s\n%s\n", d.paint(bold, strings.TrimRight(string(names), " ")), string(bars))
}

// Say draws a line of text between the arrows.
func (d *Drawing) Say(format string, args ...any) {
	fmt.Fprintf(d.out, "%s%s\n", strings.Repeat(" ", margin), d.paint(dim, "· "+fmt.Sprintf(format, args...)))
}

// bars is a line with nothing but lifelines.
func (d *Drawing) bars() []rune {
	line := []rune(strings.Repeat(" ", margin+gap*(len(lanes)-1)+1))
	for i := range lanes {
		line[margin+i*gap] = '│'
	}
	return line
}

// line draws one arrow.
func (d *Drawing) line(e event) string {
	from, to := slices.Index(lanes, e.From), slices.Index(lanes, e.To)
	if from < 0 || to < 0 || from == to {
		return d.paint(red, fmt.Sprintf("%s: %s from %s to %s", e.Report, e.Message, e.From, e.To))
	}
	line := d.bars()
	copy(line, []rune(fmt.Sprintf("%-*.*s", margin-1, margin-1, e.Report)))
	left, right := margin+min(from, to)*gap, margin+max(from, to)*gap
	for i := left + 1; i < right; i++ {
		line[i] = '─'
	}
	label := " " + e.Message + " "
	copy(line[left+1+max(0, (right-left-utf8.RuneCountInString(label))/2):right-1], []rune(label))
	if from < to {
		line[right-1] = '▶'
	} else {
		line[left+1] = '◀'
	}
	arrow := d.paint(paintOf(e.Message), string(line[left+1:right]))
	return strings.TrimRight(string(line[:left+1])+arrow+string(line[right:])+"  "+oneLine(e.Note), " ")
}

// oneLine keeps a note from breaking the drawing.
func oneLine(text string) string {
	const most = 90
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

// The colours, as parameters of the SGR control sequence.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func paintOf(message string) string {
	switch {
	case message == "Approved":
		return green
	case message == "Rejected", strings.HasPrefix(message, "Error"):
		return red
	case message == "DialogTimer", message == "Reminder":
		return yellow
	case message == "EndDialog":
		return dim
	default:
		return cyan
	}
}

func (d *Drawing) paint(how, text string) string {
	if !d.color {
		return text
	}
	return "\x1b[" + how + "m" + text + "\x1b[0m"
}

// isColorTerminal reports whether colours are welcome: see https://no-color.org.
func isColorTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
