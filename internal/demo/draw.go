package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/screen"
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
	d := &Drawing{out: &lockedWriter{w: out}, color: screen.HasColor(out), synced: make(chan string, 1), done: make(chan struct{})}
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
	names := []byte(strings.Repeat(" ", margin+gap*len(lanes)))
	for i, name := range headings {
		copy(names[margin+i*gap-min(margin, len(name)/2):], name)
	}
	fmt.Fprintf(d.out, "\n%s\n%s\n", d.paint(screen.Bold, strings.TrimRight(string(names), " ")), d.sequence().Bars())
}

// Say draws a line of text between the arrows.
func (d *Drawing) Say(format string, args ...any) {
	fmt.Fprintf(d.out, "%s%s\n", strings.Repeat(" ", margin), d.paint(screen.Dim, "· "+fmt.Sprintf(format, args...)))
}

// sequence is the drawing's layout.
func (d *Drawing) sequence() screen.Sequence {
	return screen.Sequence{Lanes: len(lanes), Margin: margin, Gap: gap, Color: d.color}
}

// line draws one arrow.
func (d *Drawing) line(e event) string {
	from, to := slices.Index(lanes, e.From), slices.Index(lanes, e.To)
	if from < 0 || to < 0 || from == to {
		return d.paint(screen.Red, fmt.Sprintf("%s: %s from %s to %s", e.Report, e.Message, e.From, e.To))
	}
	const mostNote = 90
	return d.sequence().Arrow(e.Report, from, to, e.Message, paintOf(e.Message), screen.OneLine(e.Note, mostNote), false)
}

func paintOf(message string) string {
	switch {
	case message == "Approved":
		return screen.Green
	case message == "Rejected", strings.HasPrefix(message, "Error"):
		return screen.Red
	case message == "DialogTimer", message == "Reminder":
		return screen.Yellow
	case message == "EndDialog":
		return screen.Dim
	default:
		return screen.Cyan
	}
}

func (d *Drawing) paint(how, text string) string { return screen.Paint(d.color, how, text) }
