package activator

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// reportPause is the least time between two reports: the views are for people.
const reportPause = 250 * time.Millisecond

// reporter writes down what the activator does, for sb.dm_broker_activated_tasks and
// sb.dm_broker_queue_monitors. Nothing depends on it; short-lived readers never show.
type reporter struct {
	a    *Activator
	bell bell
}

// poke says that something has changed.
func (r *reporter) poke() { r.bell.ring() }

// task and monitorReport are what sb.report_activation takes.
type task struct {
	PID       uint32  `json:"pid"`
	QueueID   int32   `json:"queue_id"`
	Procedure string  `json:"procedure_name"`
	ExecuteAs *string `json:"execute_as"`
	Age       float64 `json:"age"`
}

type monitorReport struct {
	QueueID      int32    `json:"queue_id"`
	State        string   `json:"state"`
	EmptyAge     *float64 `json:"empty_age"`
	ActivatedAge *float64 `json:"activated_age"`
}

// run reports until ctx ends. What cannot be reported is reported next time.
func (r *reporter) run(ctx context.Context) {
	for wait(ctx, time.Hour, r.bell) && wait(ctx, reportPause, nil) {
		tasks, monitors, done := r.gather(time.Now())
		if err := r.send(ctx, tasks, monitors); err != nil {
			r.a.log.Debug("report failed", "error", err)
			continue
		}
		done()
	}
}

// gather collects all tasks, and the monitors whose state has changed; done takes note that they have been reported.
func (r *reporter) gather(now time.Time) (tasks []task, monitors []monitorReport, done func()) {
	tasks, monitors = []task{}, []monitorReport{} // not null
	states := map[*monitor]string{}
	for _, m := range r.a.allMonitors() {
		mt, report := m.report(now)
		tasks = append(tasks, mt...)
		if report != nil {
			monitors = append(monitors, *report)
			states[m] = report.State
		}
	}
	return tasks, monitors, func() {
		for m, state := range states {
			m.mu.Lock()
			m.reported = state
			m.mu.Unlock()
		}
	}
}

func (r *reporter) send(ctx context.Context, tasks []task, monitors []monitorReport) error {
	t, err := json.Marshal(tasks)
	if err != nil {
		return err
	}
	m, err := json.Marshal(monitors)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = r.a.control.Exec(ctx, `
select sb.report_activation(
  activator => @activator::text, tasks => @tasks::text::jsonb, monitors => @monitors::text::jsonb)`,
		pgx.StrictNamedArgs{"activator": r.a.cfg.Name, "tasks": string(t), "monitors": string(m)})
	return err
}

// report says what the monitor's readers are, and its state when that has changed.
func (m *monitor) report(now time.Time) (tasks []task, report *monitorReport) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.running {
		if r.pid == 0 {
			continue
		}
		procedure, executeAs := r.runner.describe()
		t := task{PID: r.pid, QueueID: m.id, Procedure: procedure, Age: now.Sub(r.started).Seconds()}
		if executeAs != "" {
			t.ExecuteAs = &executeAs
		}
		tasks = append(tasks, t)
	}
	if state := m.state(); state != m.reported {
		report = &monitorReport{QueueID: m.id, State: state, EmptyAge: age(now, m.emptyAt), ActivatedAge: age(now, m.startedAt)}
	}
	return tasks, report
}

// age is in seconds; nil for what has not been.
func age(now, at time.Time) *float64 {
	if at.IsZero() {
		return nil
	}
	seconds := now.Sub(at).Seconds()
	return &seconds
}
