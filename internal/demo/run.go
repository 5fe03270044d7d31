package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/screen"
	"github.com/pgsbroker/sbroker/sbroker"
)

// settleTimeout is how long a scene may take; the longest waits for two timers and a lifetime.
const settleTimeout = 30 * time.Second

// play is one run of the demonstration.
type play struct {
	site    *Site
	in      *Input
	drawing *Drawing
	owner   *pgx.Conn
	broker  *sbroker.Broker // of the owner
	sent    map[sbroker.GroupID]Report
	scenes  int // begun so far
}

// Run plays the scenes and draws them to out, prints what they have left behind, and checks it: an error says what does
// not add up. The site must have been created.
func Run(ctx context.Context, site *Site, in *Input, out io.Writer, config activator.Config) (err error) {
	owner, err := pgx.Connect(ctx, site.URL(site.Owner))
	if err != nil {
		return err
	}
	defer closeConn(owner)
	handlers, err := site.NewActivator(config)
	if err != nil {
		return err
	}
	drawing, err := NewDrawing(ctx, out, site)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drawing.Stop()) }()
	p := &play{
		site: site, in: in, drawing: drawing, owner: owner, broker: sbroker.New(owner), sent: map[sbroker.GroupID]Report{},
	}

	// The employee of the first scene has left before anything that could answer is there.
	if err := p.askAndLeave(ctx); err != nil {
		return err
	}
	drawing.Say("the activator starts")
	running, abort := context.WithCancelCause(ctx)
	done := make(chan error, 1)
	go func() {
		err := handlers.Run(running)
		abort(cmp.Or(err, errors.New("the activator has ended")))
		done <- err
	}()
	defer func() {
		abort(nil)
		err = errors.Join(err, <-done)
	}()
	for _, scene := range []func(context.Context) error{
		p.settle, p.unknownCostCenter, p.slowApprover, p.stopAndStart, p.allOthers, p.summary,
	} {
		if err := scene(running); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) askAndLeave(ctx context.Context) error {
	p.begin("A report within the limit; its sender does not wait for the answer")
	if err := p.handIn(ctx, sceneGood); err != nil {
		return err
	}
	return p.sayWhoIsConnected(ctx)
}

func (p *play) unknownCostCenter(ctx context.Context) error {
	p.begin("An unknown cost center: the expense service ends the dialog with an error")
	if err := p.handInAndSettle(ctx, sceneUnknown); err != nil {
		return err
	}
	return p.showErrorMessage(ctx)
}

func (p *play) slowApprover(ctx context.Context) error {
	p.begin("Over the limit, and the approver is slow: a dialog timer has him reminded")
	return p.handInAndSettle(ctx, sceneSlow)
}

func (p *play) allOthers(ctx context.Context) error {
	p.begin("Everything else at once; only answers and timers are drawn")
	p.drawing.brief.Store(true)
	return p.handInAndSettle(ctx, sceneOthers)
}

// begin draws a heading.
func (p *play) begin(title string) {
	p.scenes++
	fmt.Fprintf(p.drawing.out, "\n%s\n", p.drawing.paint(screen.Bold, fmt.Sprintf("%d. %s", p.scenes, title)))
	p.drawing.Lifelines()
}

// handIn connects as the employee, hands in the reports of a scene, each in a transaction of its own, and leaves.
func (p *play) handIn(ctx context.Context, scene string) error {
	employee, err := pgx.Connect(ctx, p.site.URL(p.site.Employee))
	if err != nil {
		return err
	}
	defer closeConn(employee)
	n := 0
	for _, r := range p.in.Reports {
		if r.Scene != scene {
			continue
		}
		var group sbroker.GroupID
		err := employee.QueryRow(ctx, `
select employee.submit(number => @number::text, body => @body::text, kind => @kind::text, lifetime => @lifetime::interval)`,
			pgx.StrictNamedArgs{"number": r.Number, "body": r.body(), "kind": r.Kind, "lifetime": r.lifetime()}).Scan(&group)
		if err != nil {
			return fmt.Errorf("report %s: %w", r.Number, err)
		}
		p.sent[group] = r
		n++
	}
	closeConn(employee)
	if err := p.drawing.Sync(ctx, p.owner); err != nil {
		return err
	}
	p.drawing.Say("the employee has handed in %s and left", screen.Plural(n, "report"))
	return nil
}

func (p *play) handInAndSettle(ctx context.Context, scene string) error {
	if err := p.handIn(ctx, scene); err != nil {
		return err
	}
	return p.settle(ctx)
}

// settle waits until no conversation is left: everybody has ended his side.
func (p *play) settle(ctx context.Context) error {
	err := p.eventually(ctx, func() (bool, error) {
		left, err := p.leftOver(ctx)
		return left.total() == 0, err
	})
	if errors.Is(err, errNotSettled) {
		left, leftErr := p.leftOver(ctx)
		return errors.Join(fmt.Errorf("%w: %s", err, left), leftErr)
	}
	if err != nil {
		return err
	}
	return p.drawing.Sync(ctx, p.owner)
}

var errNotSettled = fmt.Errorf("not finished after %v", settleTimeout)

// eventually looks at a short interval until cond holds.
func (p *play) eventually(ctx context.Context, cond func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(settleTimeout)
	for {
		if ok, err := cond(); ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errNotSettled
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// sayWhoIsConnected shows that the sender has gone while his message waits.
func (p *play) sayWhoIsConnected(ctx context.Context) error {
	var sessions, waiting int
	// A session that has said goodbye may still be seen for a moment.
	err := p.eventually(ctx, func() (bool, error) {
		err := p.owner.QueryRow(ctx, `
select (select count(*) from pg_stat_activity as a where a.usename = $1),
       (select count(*) from sb.queue_messages as m where m.queue_name = 'ExpenseQueue')`,
			p.site.Employee).Scan(&sessions, &waiting)
		return sessions == 0, err
	})
	if err != nil {
		return err
	}
	p.drawing.Say("sessions of the employee: %d; messages in ExpenseQueue: %d", sessions, waiting)
	return nil
}

// showErrorMessage shows the Error message that the employees' handler has received, as it is.
func (p *play) showErrorMessage(ctx context.Context) error {
	var body string
	err := p.owner.QueryRow(ctx, `
select s.error_message from employee.submission as s where s.outcome = 'failed' order by s.submitted_at limit 1`).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // it is the summary that finds fault with it
	}
	if err != nil {
		return err
	}
	p.drawing.Say("the Error message, as received:")
	fmt.Fprintf(p.drawing.out, "%s%s\n", strings.Repeat(" ", margin+2), p.drawing.paint(screen.Red, body))
	return nil
}

// stopAndStart stops the queue, hands reports in, and starts it when the lifetimes among them have passed.
func (p *play) stopAndStart(ctx context.Context) error {
	p.begin("ExpenseQueue is stopped, and started again")
	if err := p.broker.AlterQueue(ctx, "ExpenseQueue", sbroker.QueueChanges{Enabled: new(false)}); err != nil {
		return err
	}
	p.drawing.Say("ExpenseQueue is stopped")
	if err := p.handIn(ctx, sceneStopped); err != nil {
		return err
	}
	var waiting int
	var status string
	err := p.owner.QueryRow(ctx, `
select count(*), coalesce(min(t.transmission_status), 'nothing waits') from sb.transmission_queue as t`).Scan(&waiting, &status)
	if err != nil {
		return err
	}
	p.drawing.Say("%s wait in the transmission queue: %s", screen.Plural(waiting, "message"), status)

	err = p.eventually(ctx, func() (bool, error) {
		var pending int
		err := p.owner.QueryRow(ctx, `
select count(*) from sb.conversation_endpoints as e where e.is_initiator and e.lifetime is not null`).Scan(&pending)
		return pending == 0, err
	})
	if err != nil {
		return err
	}
	if err := p.drawing.Sync(ctx, p.owner); err != nil {
		return err
	}
	if err := p.owner.QueryRow(ctx, `select count(*) from sb.transmission_queue`).Scan(&waiting); err != nil {
		return err
	}
	p.drawing.Say("lifetimes have expired; %s still wait", screen.Plural(waiting, "message"))
	if err := p.broker.AlterQueue(ctx, "ExpenseQueue", sbroker.QueueChanges{Enabled: new(true)}); err != nil {
		return err
	}
	p.drawing.Say("ExpenseQueue is started")
	return p.settle(ctx)
}
