package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/screen"
	"github.com/pgsbroker/sbroker/sbroker"
)

// leftOver is what the application has in the broker.
type leftOver struct {
	Messages, Waiting, Endpoints, Groups int
}

func (l leftOver) total() int { return l.Messages + l.Waiting + l.Endpoints + l.Groups }

func (l leftOver) String() string {
	return fmt.Sprintf("%s in queues, %s in the transmission queue, %s, %s",
		screen.Plural(l.Messages, "message"), screen.Plural(l.Waiting, "message"),
		screen.Plural(l.Endpoints, "conversation endpoint"), screen.Plural(l.Groups, "conversation group"))
}

func (p *play) leftOver(ctx context.Context) (l leftOver, err error) {
	err = p.owner.QueryRow(ctx, `
select (select count(*) from sb.queue_messages), (select count(*) from sb.transmission_queue),
       (select count(*) from sb.conversation_endpoints), (select count(*) from sb.conversation_groups)`).
		Scan(&l.Messages, &l.Waiting, &l.Endpoints, &l.Groups)
	return l, err
}

// result is a row of employee.submission: what became of one report.
type result struct {
	Group   sbroker.GroupID
	Number  string
	Kind    string
	Outcome string
	Detail  string
}

// tally counts reports by what became of them.
type tally map[string]int

func (t tally) sum() (n int) {
	for _, k := range t {
		n += k
	}
	return n
}

// summary prints what is in the state tables of both sides, and returns an error that says what does not add up.
func (p *play) summary(ctx context.Context) error {
	rows, err := p.owner.Query(ctx, `
select s.conversation_group_id, s.number, s.kind, coalesce(s.outcome, 'unanswered'), coalesce(s.detail, '')
  from employee.submission as s
 order by s.submitted_at`)
	if err != nil {
		return err
	}
	results, err := pgx.CollectRows(rows, pgx.RowToStructByPos[result])
	if err != nil {
		return err
	}
	decided, amounts, err := p.decided(ctx)
	if err != nil {
		return err
	}
	left, err := p.leftOver(ctx)
	if err != nil {
		return err
	}

	all, kinds, byKind := tally{}, []string{}, map[string]tally{}
	for _, r := range results {
		if byKind[r.Kind] == nil {
			byKind[r.Kind] = tally{}
			kinds = append(kinds, r.Kind)
		}
		byKind[r.Kind][r.Outcome]++
		all[r.Outcome]++
	}
	p.printTable(kinds, byKind, all)
	out := p.drawing.out
	fmt.Fprintf(out, "\nemployee.submission  %s\n", formula(len(results), all))
	fmt.Fprintf(out, "expenses.report      %s; %s never got there\n", formula(decided.sum(), decided), screen.Plural(len(results)-decided.sum(), "report"))
	fmt.Fprintf(out, "approved amounts     %s EUR at the expense service, %s EUR at the employees'\n", amounts[0], amounts[1])
	fmt.Fprintf(out, "left in the broker   %s\n", left)

	wrong := p.check(results, all, decided)
	if amounts[0] != amounts[1] {
		wrong = append(wrong, fmt.Errorf("approved amounts differ: %s and %s", amounts[0], amounts[1]))
	}
	if left.total() != 0 {
		wrong = append(wrong, fmt.Errorf("left over: %s", left))
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("it does not add up: %w", err)
	}
	fmt.Fprintf(out, "\n%s\n", p.drawing.paint(screen.Green, "It adds up: every report ended as expected, and nothing is left."))
	return nil
}

// decided counts the state table of the expense service, and the approved amounts on both sides.
func (p *play) decided(ctx context.Context) (t tally, amounts [2]string, err error) {
	rows, err := p.owner.Query(ctx, `select s.status, count(*) from expenses.report as s group by s.status`)
	if err != nil {
		return nil, amounts, err
	}
	t = tally{}
	var status string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&status, &n}, func() error { t[status] = n; return nil }); err != nil {
		return nil, amounts, err
	}
	err = p.owner.QueryRow(ctx, `
select (select coalesce(sum(s.amount), 0)::text from expenses.report as s where s.status = 'approved'),
       (select coalesce(sum(s.amount), 0)::text from employee.submission as s where s.outcome = 'approved')`).
		Scan(&amounts[0], &amounts[1])
	return t, amounts, err
}

// check compares what was handed in, what came back, and what the expense service has decided.
func (p *play) check(results []result, all, decided tally) (wrong []error) {
	if len(results) != len(p.in.Reports) || len(p.sent) != len(p.in.Reports) {
		wrong = append(wrong, fmt.Errorf("%d reports in the input, %d handed in, %d in employee.submission",
			len(p.in.Reports), len(p.sent), len(results)))
	}
	for _, r := range results {
		if want := p.sent[r.Group].Expect; r.Outcome != want {
			wrong = append(wrong, fmt.Errorf("report %s is %s (%s), not %s", r.Number, r.Outcome, r.Detail, want))
		}
	}
	for _, outcome := range []string{"approved", "rejected", "failed"} {
		if all[outcome] != decided[outcome] {
			wrong = append(wrong, fmt.Errorf("the expense service has %d %s, the employees %d", decided[outcome], outcome, all[outcome]))
		}
	}
	return wrong
}

// printTable prints a row for each kind of report and a column for each outcome that there is.
func (p *play) printTable(kinds []string, byKind map[string]tally, all tally) {
	columns := columnsOf(all)
	const width = 30
	row := func(name string, t tally) string {
		text := fmt.Sprintf("%-*s%6d", width, name, t.sum())
		for _, c := range columns {
			cell := ""
			if t[c] != 0 {
				cell = fmt.Sprint(t[c])
			}
			text += fmt.Sprintf("%*s", len(c)+3, cell)
		}
		return strings.TrimRight(text, " ")
	}
	head := fmt.Sprintf("%-*s%6s   %s", width, "reports", "sent", strings.Join(columns, "   "))
	fmt.Fprintf(p.drawing.out, "\n%s\n", p.drawing.paint(screen.Bold, head))
	for _, kind := range kinds {
		fmt.Fprintln(p.drawing.out, row(kind, byKind[kind]))
	}
	fmt.Fprintf(p.drawing.out, "%s\n%s\n", strings.Repeat("─", len(head)), row("all", all))
}

// columnsOf is the outcomes that have occurred, in the usual order; unforeseen ones come last.
func columnsOf(all tally) []string {
	var columns []string
	for _, outcome := range outcomes {
		if all[outcome] > 0 {
			columns = append(columns, outcome)
		}
	}
	for _, outcome := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(columns, outcome) {
			columns = append(columns, outcome)
		}
	}
	return columns
}

// formula is a sum with its terms: 66 = 38 approved + 18 rejected.
func formula(total int, t tally) string {
	var terms []string
	for _, c := range columnsOf(t) {
		terms = append(terms, fmt.Sprintf("%d %s", t[c], c))
	}
	return fmt.Sprintf("%d = %s", total, strings.Join(terms, " + "))
}
