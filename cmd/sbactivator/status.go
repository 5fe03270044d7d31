package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/internal/doctor"
	"github.com/pgsbroker/sbroker/internal/screen"
)

func newStatusCommand() *cobra.Command {
	var (
		asJSON, again bool
		interval      time.Duration
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show queues, readers, what waits and why",
		Long: `Show queues, readers, what waits and why.

Cheap however much waits: large numbers are estimates (~) or lower bounds (≥). An admin of sb sees everything,
another role the queues that it may receive from.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if interval < 100*time.Millisecond {
				return errors.New("--interval must be at least 100ms")
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if again {
				return watchStatus(cmd, asJSON, interval)
			}
			return withLook(cmd, func(ctx context.Context, conn *pgx.Conn) error {
				report, err := readStatus(ctx, conn)
				if err != nil {
					return err
				}
				return show(cmd, asJSON, report)
			})
		},
	}
	addJSONFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&again, "watch", false, "show it again and again until Ctrl-C; with --json, one line each time")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "how often --watch does")
	return cmd
}

// watchStatus goes on through outages, once it has begun.
func watchStatus(cmd *cobra.Command, asJSON bool, interval time.Duration) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	config, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	conn, err := connectLook(ctx, config.Database.URL)
	if err != nil {
		return err
	}
	defer func() { closeLook(conn) }()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if conn.IsClosed() {
			if next, reconnectErr := connectLook(ctx, config.Database.URL); reconnectErr == nil {
				conn = next
			} else {
				err = reconnectErr
			}
		}
		var report *statusReport
		if !conn.IsClosed() {
			report, err = readStatus(ctx, conn)
		}
		if ctx.Err() != nil {
			return nil // Ctrl-C is how it ends
		}
		switch {
		case err != nil && asJSON:
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "sbactivator: %s\n", oneLine(err))
		case err != nil:
			p := newPage(out)
			p.line(screen.Red, "%s  %s", time.Now().Format(time.TimeOnly), oneLine(err))
			err = writeFrame(out, p.String())
		case asJSON:
			err = writeJSON(out, report, "")
		default:
			p := newPage(out)
			report.print(p)
			err = writeFrame(out, p.String())
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// writeFrame draws over the frame before it, on a terminal; elsewhere frames follow each other.
func writeFrame(out io.Writer, text string) error {
	rows, ok := screen.Rows(out)
	if !ok {
		_, err := io.WriteString(out, text+"\n")
		return err
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if rows > 1 && len(lines) > rows-1 {
		lines = append(lines[:rows-2], "…")
	}
	const home, clearLine, clearBelow = "\x1b[H", "\x1b[K", "\x1b[J"
	_, err := io.WriteString(out, home+strings.Join(lines, clearLine+"\n")+clearLine+"\n"+clearBelow)
	return err
}

// statusReport is what status prints. Its JSON is documented in docs/operations.md: keys may be added, not changed.
type statusReport struct {
	Format       int                 `json:"format"` // 1
	Database     databaseStatus      `json:"database"`
	Queues       []queueStatus       `json:"queues"`
	Activators   []activatorStatus   `json:"activators"`
	Transactions transactionStatus   `json:"transactions"`
	Transmission transmissionStatus  `json:"transmission_queue"`
	Endpoints    conversationsStatus `json:"conversation_endpoints"`
}

type databaseStatus struct {
	At              time.Time `json:"at"`
	Name            string    `json:"name"`
	Server          string    `json:"server" db:"-"`
	ServerVersion   string    `json:"server_version"`
	IsStandby       bool      `json:"is_standby"`
	Role            string    `json:"role"`
	IsAdmin         bool      `json:"is_admin" db:"-"` // else this is only what the role may see
	SchemaVersion   *int64    `json:"schema_version"`
	BrokerInstance  string    `json:"broker_instance"`
	IsBrokerEnabled bool      `json:"is_broker_enabled"`
	PoisonThreshold int       `json:"poison_message_threshold"`
}

type queueStatus struct {
	Name                 string   `json:"name"`
	State                string   `json:"state"` // on, off, poison
	ReadyMessages        int64    `json:"ready_messages"`
	IsEstimate           bool     `json:"is_estimate"`
	OldestReadySeconds   *float64 `json:"oldest_ready_seconds"`
	Readers              int64    `json:"readers"`
	MaxReaders           *int64   `json:"max_readers"`
	BlockedGroups        int64    `json:"blocked_groups"`
	UndeliveredMessages  int64    `json:"undelivered_messages"`
	ConsecutiveRollbacks int64    `json:"consecutive_rollbacks"`
	IsActivationEnabled  bool     `json:"is_activation_enabled"`
	LastReceiveSeconds   *float64 `json:"last_receive_seconds"`
	IsNotReceived        bool     `json:"is_not_received"` // has messages for more than a minute that nobody takes
	IsSystem             bool     `json:"is_system"`
}

type activatorStatus struct {
	Name        string `json:"name"`
	Role        string `json:"role"`
	Sessions    int64  `json:"sessions"`
	IsListening bool   `json:"is_listening"`
	Readers     int64  `json:"readers"`
}

type transactionStatus struct {
	HoldingGroups int64    `json:"holding_groups"`
	OldestSeconds *float64 `json:"oldest_seconds"`
}

type transmissionStatus struct {
	Messages     int64                `json:"messages"`
	IsLowerBound bool                 `json:"is_lower_bound"` // not all were looked at
	Estimate     *int64               `json:"estimate"`       // then, for an admin
	Reasons      []transmissionReason `json:"reasons"`
}

type transmissionReason struct {
	ToService     string   `json:"to_service"`
	Reason        string   `json:"reason"`
	Messages      int64    `json:"messages"`
	OldestSeconds *float64 `json:"oldest_seconds"`
}

type conversationsStatus struct {
	Endpoints    int64           `json:"endpoints"`
	IsLowerBound bool            `json:"is_lower_bound"`
	Estimate     *int64          `json:"estimate"`
	States       []endpointState `json:"states"`
	Timers       int64           `json:"timers"`
	TimersDue    int64           `json:"timers_due"`
}

type endpointState struct {
	State     string `json:"state"`
	StateDesc string `json:"state_desc"`
	Endpoints int64  `json:"endpoints"`
	Timers    int64  `json:"-"`
	TimersDue int64  `json:"-"`
}

// How many rows are looked at where looking at all could take long: a status is computed for each.
const (
	transmissionSample = 500
	endpointSample     = 5000
)

// queueStateSQL is a queue's state as an expression, over q (sb.service_queues).
const queueStateSQL = `
case
  when q.is_receive_enabled then 'on'
  when q.is_poison_disabled then 'poison'
  else 'off'
end`

func readStatus(ctx context.Context, conn *pgx.Conn) (*statusReport, error) {
	r := &statusReport{Format: 1}
	err := inSnapshot(ctx, conn, func(tx pgx.Tx) (err error) {
		if r.Database, err = readDatabase(ctx, tx); err != nil {
			return err
		}
		r.Queues, err = rowsOf[queueStatus](ctx, tx, `
select q.name, `+queueStateSQL+` as state, s.ready_messages, s.is_estimate,
       extract(epoch from s.oldest_ready_age)::float8 as oldest_ready_seconds,
       (select count(*) from sb.dm_broker_activated_tasks as t where t.queue_id = q.queue_id) as readers,
       q.max_readers::bigint as max_readers, s.blocked_groups, s.transmission_backlog as undelivered_messages,
       s.consecutive_rollbacks::bigint as consecutive_rollbacks, q.is_activation_enabled,
       extract(epoch from clock_timestamp() - s.last_receive_time)::float8 as last_receive_seconds,
       coalesce(`+doctor.Unread+` or `+doctor.NotReceived+`, false) as is_not_received, q.is_ms_shipped as is_system
  from sb.service_queues as q
  join sb.queue_statistics as s on s.queue_id = q.queue_id
 order by q.name collate "C"`, pgx.NamedArgs{"patience": "1 minute"})
		if err != nil {
			return err
		}
		// The name of an activator is in its sessions' application_name, which is cut at 63 bytes.
		r.Activators, err = rowsOf[activatorStatus](ctx, tx, `
select substr(a.name, 13) as name, min(a.usename)::text as role, count(*) as sessions, bool_or(a.is_listener) as is_listening,
       (select count(*)
          from sb.dm_broker_activated_tasks as t
         where starts_with('sbactivator ' || t.activator, a.name)) as readers
  from (
    select regexp_replace(o.application_name, ' listener$', '') as name, o.application_name ~ ' listener$' as is_listener, o.usename
      from pg_stat_activity as o
     where o.datname = current_database()
       and o.application_name like 'sbactivator %'
  ) as a
 group by a.name
 order by a.name collate "C"`)
		if err != nil {
			return err
		}
		// Who receives or begins a dialog holds a group until his transaction ends. The groups themselves do not tell.
		r.Transactions, err = rowOf[transactionStatus](ctx, tx, `
select count(distinct l.virtualtransaction) as holding_groups,
       extract(epoch from max(clock_timestamp() - a.xact_start))::float8 as oldest_seconds
  from pg_locks as l
  left join pg_stat_activity as a on a.pid = l.pid
 where l.locktype = 'relation'
   and l.database = (select d.oid from pg_database as d where d.datname = current_database())
   and l.relation = 'sb.conversation_group'::regclass
   and l.mode in ('RowShareLock', 'RowExclusiveLock')
   and l.granted`)
		if err != nil {
			return err
		}
		r.Transmission.Reasons, err = rowsOf[transmissionReason](ctx, tx, `
select t.to_service_name as to_service, t.transmission_status as reason, count(*) as messages,
       extract(epoch from clock_timestamp() - min(t.enqueue_time))::float8 as oldest_seconds
  from (
    select w.to_service_name, w.transmission_status, w.enqueue_time
      from sb.transmission_queue as w
     limit $1::integer
  ) as t
 group by t.to_service_name, t.transmission_status
 order by messages desc, t.to_service_name collate "C", t.transmission_status`, transmissionSample)
		if err != nil {
			return err
		}
		for _, reason := range r.Transmission.Reasons {
			r.Transmission.Messages += reason.Messages
		}
		r.Transmission.IsLowerBound = r.Transmission.Messages >= transmissionSample
		if r.Endpoints, err = readEndpoints(ctx, tx); err != nil || !r.Database.IsAdmin {
			return err
		}
		if r.Transmission.IsLowerBound {
			r.Transmission.Estimate, err = estimate(ctx, tx, "transmission")
		}
		if err == nil && r.Endpoints.IsLowerBound {
			r.Endpoints.Estimate, err = estimate(ctx, tx, "endpoint")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.Database.Server = serverOf(conn)
	return r, nil
}

func readDatabase(ctx context.Context, tx pgx.Tx) (databaseStatus, error) {
	d, err := rowOf[databaseStatus](ctx, tx, `
select clock_timestamp() as at, current_database()::text as name, current_setting('server_version') as server_version,
       pg_is_in_recovery() as is_standby, current_user::text as role, b.schema_version,
       b.broker_instance::text as broker_instance, b.is_broker_enabled, o.value::integer as poison_threshold
  from sb.broker as b
  join sb.options as o on o.name = 'poison_message_threshold'`)
	if err != nil {
		return d, err
	}
	d.IsAdmin, err = isAdmin(ctx, tx)
	return d, err
}

// isAdmin asks for something that only admins may have, and that is nothing.
func isAdmin(ctx context.Context, tx pgx.Tx) (bool, error) {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select from sb.activation_scan(queue_ids => '{}')`)
		return err
	})
	if hasSQLState(err, "42501") {
		return false, nil
	}
	return err == nil, err
}

func readEndpoints(ctx context.Context, tx pgx.Tx) (c conversationsStatus, err error) {
	c.States, err = rowsOf[endpointState](ctx, tx, `
select e.state, e.state_desc, count(*) as endpoints, count(e.dialog_timer) as timers,
       count(*) filter (where e.dialog_timer <= clock_timestamp()) as timers_due
  from (
    select o.state, o.state_desc, o.dialog_timer
      from sb.conversation_endpoints as o
     limit $1::integer
  ) as e
 group by e.state, e.state_desc
 order by endpoints desc, e.state`, endpointSample)
	for _, state := range c.States {
		c.Endpoints += state.Endpoints
		c.Timers += state.Timers
		c.TimersDue += state.TimersDue
	}
	c.IsLowerBound = c.Endpoints >= endpointSample
	return c, err
}

// estimate is about how many rows a table of sb has.
func estimate(ctx context.Context, tx pgx.Tx, table string) (*int64, error) {
	var n int64
	err := tx.QueryRow(ctx, `
select coalesce(sum(s.n_live_tup), 0)::bigint
  from pg_stat_all_tables as s
 where s.schemaname = 'sb_internal'
   and s.relname = $1::text`, table).Scan(&n)
	return &n, err
}

// serverOf is where a connection leads. It holds no password.
func serverOf(conn *pgx.Conn) string {
	c := conn.Config()
	return fmt.Sprintf("%s:%d", c.Host, c.Port)
}

func (r *statusReport) print(p *page) {
	d := r.Database
	p.line(screen.Bold, "%s on %s as %s, %s", d.Name, d.Server, d.Role, d.At.Local().Format(time.DateTime))
	if !d.IsAdmin {
		p.line(screen.Yellow, "Only what this role may see: it is no admin of sb.")
	}
	if d.IsStandby {
		p.line(screen.Yellow, "This server is a standby: nothing can be sent or received here.")
	}
	if !d.IsBrokerEnabled {
		p.line(screen.Red, "The broker is disabled: messages wait in the transmission queue (sb.enable_broker).")
	}
	p.WriteString("\n")
	r.printQueues(p)
	p.WriteString("\n")
	r.printRest(p)
}

func (r *statusReport) printQueues(p *page) {
	var rows [][]screen.Cell
	for _, q := range r.Queues {
		if q.IsSystem && q.ReadyMessages == 0 && q.State == "on" {
			continue
		}
		estimate, limit, bound := "", "-", ""
		if q.IsEstimate {
			estimate = "~"
		}
		if q.MaxReaders != nil {
			limit = count(*q.MaxReaders, "")
		}
		if q.UndeliveredMessages >= 10000 { // where sb.queue_statistics stops counting
			bound = "≥"
		}
		state, color := q.State, stateColor(q.State)
		if q.IsNotReceived {
			state, color = "not received", screen.Red
		}
		row := cells(q.Name, state, count(q.ReadyMessages, estimate), span(q.OldestReadySeconds), count(q.Readers, "")+"/"+limit,
			count(q.BlockedGroups, ""), count(q.UndeliveredMessages, bound),
			fmt.Sprintf("%d/%d", q.ConsecutiveRollbacks, r.Database.PoisonThreshold))
		row[1].Color = color
		for _, i := range []int{5, 6} {
			if row[i].Text != "0" {
				row[i].Color = screen.Yellow
			}
		}
		if q.ConsecutiveRollbacks > 0 {
			row[7].Color = screen.Yellow
		}
		rows = append(rows, row)
	}
	if rows == nil {
		p.line("", "No queues.")
	}
	p.table(rows, screen.Column{Heading: "QUEUE", Shrinks: true}, screen.Column{Heading: "STATE"},
		screen.Column{Heading: "READY", Right: true}, screen.Column{Heading: "OLDEST", Right: true},
		screen.Column{Heading: "READERS", Right: true}, screen.Column{Heading: "BLOCKED", Right: true},
		screen.Column{Heading: "UNDELIVERED", Right: true}, screen.Column{Heading: "ROLLBACKS", Right: true})
}

func stateColor(state string) string {
	switch state {
	case "on":
		return screen.Green
	case "off":
		return screen.Yellow
	default:
		return screen.Red
	}
}

func (r *statusReport) printRest(p *page) {
	const label = "%-15s"
	if len(r.Activators) == 0 {
		p.line("", label+"none connected", "Activators")
	}
	for i, a := range r.Activators {
		head := ""
		if i == 0 {
			head = "Activators"
		}
		listening := ""
		if !a.IsListening {
			listening = ", not listening"
		}
		p.line("", label+"%s as %s: %s, %s%s", head, a.Name, a.Role, screen.Plural(a.Readers, "reader"), screen.Plural(a.Sessions, "session"), listening)
	}
	oldest := ""
	if r.Transactions.OldestSeconds != nil {
		oldest = ", the oldest for " + span(r.Transactions.OldestSeconds)
	}
	hold := "hold"
	if r.Transactions.HoldingGroups == 1 {
		hold = "holds"
	}
	p.line("", label+"%d %s conversation groups%s", "Transactions", r.Transactions.HoldingGroups, hold, oldest)
	p.line("", label+"%s", "Transmission", sampled(r.Transmission.Messages, "message", r.Transmission.IsLowerBound, r.Transmission.Estimate))
	for _, reason := range r.Transmission.Reasons {
		p.line(screen.Yellow, "  %s, oldest %s, to %s", screen.Plural(reason.Messages, "message"), span(reason.OldestSeconds), reason.ToService)
		p.text(screen.Yellow, "    ", cmp.Or(reason.Reason, "Nothing is in the way: an activator, or sb.deliver(), moves them on."))
	}
	var states []string
	for _, state := range r.Endpoints.States {
		states = append(states, fmt.Sprintf("%d %s", state.Endpoints, state.StateDesc))
	}
	p.line("", label+"%s", "Conversations", sampled(r.Endpoints.Endpoints, "endpoint", r.Endpoints.IsLowerBound, r.Endpoints.Estimate))
	p.text("", "  ", strings.Join(states, ", "))
	p.line("", label+"%d set, %d due", "Timers", r.Endpoints.Timers, r.Endpoints.TimersDue)
}

// sampled says how many there are, and how sure that is.
func sampled(n int64, what string, isLowerBound bool, estimate *int64) string {
	switch {
	case !isLowerBound:
		return screen.Plural(n, what)
	case estimate != nil && *estimate > n:
		return fmt.Sprintf("~%d %ss, of which these are the first %d:", *estimate, what, n)
	default:
		return fmt.Sprintf("at least %d %ss:", n, what)
	}
}
