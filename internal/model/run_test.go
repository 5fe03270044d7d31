package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// testClock puts the clock of the database into our hands: it stands still until a step moves it. The functions on the
// hot paths ask PostgreSQL itself instead of _now, so all of them are made again to ask _now.
const testClock = `
create sequence public.model_clock minvalue 0 start 0;
create or replace function sb_internal._now()
  returns timestamptz
  language sql
  volatile
  parallel safe
  security invoker
begin atomic
  select timestamptz '2030-01-01 00:00:00+00'
    + coalesce(pg_catalog.pg_sequence_last_value('public.model_clock'::regclass)) * interval '1 microsecond';
end;
do $$
declare
  f text;
  made integer := 0;
begin
  for f in
    select replace(pg_get_functiondef(p.oid), 'clock_timestamp()', 'sb_internal._now()')
      from pg_proc as p
     where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
       and p.prosrc like '%clock_timestamp()%'
  loop
    execute f;
    made := made + 1;
  end loop;
  for f in
    select format('create or replace view %s with (security_barrier = true) as %s', c.oid::regclass,
             replace(pg_get_viewdef(c.oid), 'clock_timestamp()', 'sb_internal._now()'))
      from pg_class as c
     where c.relkind = 'v'
       and c.relnamespace = 'sb'::regnamespace
       and pg_get_viewdef(c.oid) like '%clock_timestamp()%'
  loop
    execute f;
    made := made + 1;
  end loop;
  if made = 0 then
    raise exception 'nothing asks clock_timestamp any more: remove this';
  end if;
end $$;`

// helpers are for the views below.
const helpers = `
create function public.us(at timestamptz) returns bigint language sql immutable
  as $$ select round(extract(epoch from at - timestamptz '2030-01-01 00:00:00+00') * 1000000)::bigint $$;
create function public.model_message(type text, body bytea) returns text language sql stable
  as $$ select case when type like '%/Error' then 'Error ' || sb.error_code(body)
                    else concat_ws(' ', substring(type from '[^/]*$'), sb.body_text(body)) end $$;
create function public.model_baseline() returns text language sql stable as $$
  select string_agg(c.oid::regclass || ' '
           || (xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %s', c.oid::regclass), false, true, '')))[1], ', '
           order by c.oid::regclass::text)
    from pg_class as c
   where c.relkind = 'r' and c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
     and c.relname <> 'queue_monitor' $$;`

// viewSQL is what the views show, in the words of [world.lines].
const viewSQL = `
select concat_ws(' ', 'side', e.conversation_handle, e.conversation_id, e.is_initiator::text, e.conversation_group_id, s.name,
         e.far_service, k.name, e.state, e.priority, e.send_sequence, coalesce(public.us(e.lifetime)::text, '-'),
         coalesce(public.us(e.dialog_timer)::text, '-'))
  from sb.conversation_endpoints as e
  join sb.services as s on s.service_id = e.service_id
  join sb.service_contracts as k on k.service_contract_id = e.service_contract_id
union all
select concat_ws(' ', 'group', g.conversation_group_id, s.name)
  from sb.conversation_groups as g
  join sb.services as s on s.service_id = g.service_id
union all
select concat_ws(' ', 'message', m.queue_name, m.status, m.priority, m.conversation_group_id, m.conversation_handle,
         m.message_sequence_number, m.service_name, m.service_contract_name,
         public.model_message(m.message_type_name, m.message_body), public.us(m.message_enqueue_time))
  from sb.queue_messages as m
union all
select concat_ws(' ', 'waiting', t.conversation_handle, t.to_service_name, t.from_service_name, t.service_contract_name,
         t.message_sequence_number, public.model_message(t.message_type_name, t.message_body), public.us(t.enqueue_time), t.priority,
         case when t.transmission_status like 'Held: an Error%' then 'error'
              when t.transmission_status like 'Held: the other side%' then 'ended'
              when t.transmission_status like '%does not exist.' then 'missing'
              when t.transmission_status like '%is disabled.' then 'off'
              when t.transmission_status = '' then 'none'
              else t.transmission_status end)
  from sb.transmission_queue as t
union all
select concat_ws(' ', 'state', c.conversation_group_id, c.state) from sb.conversation_state as c
union all
select concat_ws(' ', 'queue', q.name, q.is_receive_enabled::text, q.is_retention_enabled::text)
  from sb.service_queues as q where q.name in ('QA', 'QB')`

// patience is how long the database may take for what it must do at once, on a very busy machine.
const patience = 60 * time.Second

// failure is where model and database disagree.
type failure struct {
	kind, text string
	at         int // number of the step
}

func (f *failure) Error() string { return fmt.Sprintf("step %d: %s: %s", f.at+1, f.kind, f.text) }

// bench is the database that runs are cloned from.
type bench struct {
	t        testing.TB
	db       *pgtest.DB
	admin    *pgxpool.Pool // in another database: a template must not be in use
	sabotage string        // SQL that breaks the broker, for tests of the test
	baseline string
	clones   atomic.Int64
}

func newBench(t testing.TB, sabotage string) *bench {
	t.Helper()
	b := &bench{t: t, db: pgtest.New(t), sabotage: sabotage}
	ctx := t.Context()
	owner := b.connect(ctx, b.db.Owner, b.db.Name)
	for _, sql := range []string{testClock, helpers, setUp, sabotage} {
		if _, err := owner.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := owner.QueryRow(ctx, "select public.model_baseline()").Scan(&b.baseline); err != nil {
		t.Fatal(err)
	}
	owner.Close(ctx)
	var err error
	if b.admin, err = pgxpool.New(ctx, b.url("", "postgres")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.admin.Close)
	return b
}

func (b *bench) url(role, database string) string {
	u, err := url.Parse(b.db.URLAs(role))
	if err != nil {
		b.t.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}

func (b *bench) connect(ctx context.Context, role, database string) *pgx.Conn {
	conn, err := pgx.Connect(ctx, b.url(role, database))
	if err != nil {
		b.t.Fatal(err)
	}
	return conn
}

// run is one script on its way through model and database.
type run struct {
	b        *bench
	ctx      context.Context //nolint:containedctx // lives as long as the run
	database string
	control  *pgx.Conn // looks on, and moves the clock
	backends map[*session]*backend
	m        *model
	names    map[string]string // uuid of every name
	baseline string
	step     int
	did      []step // the steps that were not passed over
	unsure   string // why the run was given up
	counts   map[string]int
}

// backend is the session in the database.
type backend struct {
	conn    *pgx.Conn
	answers chan answer
	shown   []*session // whom it was seen to wait for
	stuck   *patient   // whom it waits for although his lock is gone
	seen    []int      // how often a part of the transactions of shown had been rolled back then
}

func (b *backend) waitsFor(by []*session) {
	b.shown, b.seen = slices.Clone(by), nil
	for _, s := range by {
		b.seen = append(b.seen, s.partial)
	}
}

// patient is the wait for the end of a transaction.
type patient struct {
	s           *session
	transaction int
}

type answer struct {
	rows []string
	err  error
}

const sessions = 4

// start clones the database for a run.
func (b *bench) start(cfg config) *run {
	b.t.Helper()
	ctx := b.t.Context()
	r := &run{
		b: b, ctx: ctx, database: fmt.Sprintf("%s_run%d", b.db.Name, b.clones.Add(1)), m: newModel(cfg, sessions),
		backends: map[*session]*backend{}, names: map[string]string{}, counts: map[string]int{},
	}
	ident := pgx.Identifier{r.database}.Sanitize()
	if _, err := b.admin.Exec(ctx, fmt.Sprintf("create database %s template %s owner %s", ident,
		pgx.Identifier{b.db.Name}.Sanitize(), pgx.Identifier{b.db.Owner}.Sanitize())); err != nil {
		b.t.Fatal(err)
	}
	r.control = b.connect(ctx, b.db.Owner, r.database)
	sql := "select setval('public.model_clock', 0);"
	if cfg.priorities {
		sql += setUpPriorities
	}
	if cfg.poison {
		sql += setUpPoison
	}
	if _, err := r.control.Exec(ctx, sql); err != nil {
		b.t.Fatal(err)
	}
	if err := r.control.QueryRow(ctx, "select public.model_baseline()").Scan(&r.baseline); err != nil {
		b.t.Fatal(err)
	}
	for _, s := range r.m.sessions {
		r.backends[s] = &backend{conn: b.connect(ctx, b.db.Owner, r.database)}
	}
	for i := range 3 {
		r.names[fmt.Sprintf("g%d", i+1)] = uuid.NewString()
	}
	return r
}

// close ends the run and drops its database.
func (r *run) close() {
	ctx := context.Background()
	for _, s := range r.m.sessions {
		if s.call != nil {
			s.call.stop()
		}
	}
	// Who still waits is ended by the server.
	if _, err := r.b.admin.Exec(ctx, fmt.Sprintf("drop database %s with (force)", pgx.Identifier{r.database}.Sanitize())); err != nil {
		r.b.t.Error(err)
	}
	for _, s := range r.m.sessions {
		back := r.backends[s]
		if back.answers != nil {
			<-back.answers
		}
		back.conn.Close(ctx)
	}
	r.control.Close(ctx)
}

func (r *run) fail(kind, format string, args ...any) *failure {
	text := fmt.Sprintf(format, args...)
	// Names are easier to follow than uuids.
	for name, id := range r.names {
		text = strings.ReplaceAll(text, id, name)
	}
	return &failure{kind, text, r.step}
}

// textRows returns single-column rows as text.
func textRows(ctx context.Context, conn *pgx.Conn, sql string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, sql, append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		values := row.RawValues()
		if len(values) == 0 {
			return "", nil
		}
		if values[0] == nil {
			return "NULL", nil
		}
		return string(values[0]), nil
	})
}

// id is the uuid of a name; one that is not known yet gets one that nobody has.
func (r *run) id(name string) string {
	if id, ok := r.names[name]; ok {
		return id
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()
}

// resolve puts uuids in place of the names in a step.
func (r *run) resolve(c *call) {
	w := c.view()
	args := map[string]string{}
	for key, value := range c.step.args {
		switch {
		case key == "on" && c.step.verb == "begin_dialog": // a contract
		case key == "on" || key == "with" || key == "for" || key == "group":
			var ids []string
			for _, name := range strings.Split(value, ",") {
				id := r.id(name)
				if side, ok := strings.CutPrefix(name, "@"); ok {
					if s, ok := w.sides[r.id(side)]; ok {
						id = s.group
					}
				}
				ids = append(ids, id)
			}
			value = strings.Join(ids, ",")
		}
		args[key] = value
	}
	c.step.args = args
}

// do takes one step. Steps that make no sense where they stand, or whose outcome would be a race, are passed over.
func (r *run) do(st step) *failure {
	r.m.now += 137
	if err := r.setClock(); err != nil {
		return err
	}
	did, f := r.perform(st)
	if did {
		r.did = append(r.did, st)
		r.counts[st.verb]++
	}
	if f == nil && did {
		f = r.settle()
	}
	if f == nil && did && r.unsure == "" {
		f = r.compare(st)
	}
	r.step++
	return f
}

func (r *run) setClock() *failure {
	if _, err := r.control.Exec(r.ctx, "select setval('public.model_clock', $1)", r.m.now); err != nil {
		return r.fail("clock", "%v", err)
	}
	return nil
}

func (r *run) perform(st step) (bool, *failure) {
	switch st.verb {
	case "tick":
		d := st.duration("by")
		for _, s := range r.m.sessions {
			if s.call != nil && s.call.paused.until != 0 && r.m.now+d >= s.call.paused.until {
				return false, nil
			}
		}
		r.m.now += d
		return true, r.setClock()
	case "traffic":
		_, err := r.control.Exec(r.ctx, "select setval('sb_internal.queuing_order', nextval('sb_internal.queuing_order') + $1)", st.number("by"))
		if err != nil {
			return true, r.fail("traffic", "%v", err)
		}
		return true, nil
	}
	i := slices.IndexFunc(r.m.sessions, func(s *session) bool { return s.name == st.who })
	if i < 0 {
		return true, r.fail("script", "no session %s", st.who)
	}
	s := r.m.sessions[i]
	if st.verb == "kill" {
		return true, r.kill(s)
	}
	if s.call != nil {
		return false, nil
	}
	sql := strings.ReplaceAll(st.verb, "_", " ")
	switch st.verb {
	case "begin":
		if s.open {
			return false, nil
		}
		s.open = true
	case "commit":
		if !s.open {
			return false, nil
		}
		r.m.commit(s)
	case "rollback":
		if !s.open {
			return false, nil
		}
		r.m.rollback(s)
	case "savepoint":
		if !s.open || s.failed {
			return false, nil
		}
		sql += fmt.Sprintf(" sp%d", s.saves())
		s.entries = append(s.entries, entry{save: true})
	case "rollback_to":
		if s.saves() == 0 {
			return false, nil
		}
		sql += fmt.Sprintf(" sp%d", s.saves()-1)
		s.entries, s.failed = s.entries[:s.lastSave()], false
		s.partial++
	case "release":
		if s.saves() == 0 || s.failed {
			return false, nil
		}
		sql += fmt.Sprintf(" sp%d", s.saves()-1)
		at := s.lastSave() - 1
		s.entries = slices.Delete(s.entries, at, at+1)
	default:
		return r.statement(s, st)
	}
	if _, err := r.backends[s].conn.Exec(r.ctx, sql); err != nil {
		return true, r.fail("transaction", "%s: %v", sql, err)
	}
	return true, nil
}

// kill terminates the backend of a session and gives it a new one.
func (r *run) kill(s *session) *failure {
	back := r.backends[s]
	var ended bool
	err := r.control.QueryRow(r.ctx, "select pg_terminate_backend($1::integer, 30000)", back.conn.PgConn().PID()).Scan(&ended)
	if err != nil || !ended {
		return r.fail("kill", "%v", err)
	}
	if s.call != nil {
		s.call.stop()
		s.call = nil
	}
	if back.answers != nil {
		<-back.answers
	}
	r.m.rollback(s)
	back.conn.Close(r.ctx)
	r.backends[s] = &backend{conn: r.b.connect(r.ctx, r.b.db.Owner, r.database)}
	return nil
}

// statement runs a verb, in the model first.
func (r *run) statement(s *session, st step) (bool, *failure) {
	if _, ok := verbs[st.verb]; !ok {
		return true, r.fail("script", "no verb %s", st.verb)
	}
	if s.failed || r.isRacy(st) {
		return false, nil
	}
	c := r.m.start(s, st, r.resolve)
	isDone := c.advance()
	if !isDone && (c.paused.unsure != "" || c.paused.by != nil && r.mayNotWait(c, st.get("deadlock") != "") != "") {
		c.cancel()
		return false, nil
	}
	s.call = c
	return true, r.follow(c, isDone)
}

// isRacy: who tries again and again for several locks holds some of them at times. What passes by locked rows would see
// that or not.
func (r *run) isRacy(st step) bool {
	if st.verb != "deliver" && st.verb != "maintain" && st.verb != "alter_queue" {
		return false
	}
	return slices.ContainsFunc(r.m.sessions, func(s *session) bool { return s.call != nil && s.call.paused.polite })
}

// mayNotWait says why a call must not wait: of two that wait for the same transaction nobody knows which goes on first.
// A deadlock takes a second, so there are few.
func (r *run) mayNotWait(c *call, deadlock bool) string {
	polite := c.paused.polite
	for _, o := range r.m.sessions {
		if o == c.s || o.call == nil {
			continue
		}
		if o.call.paused.polite && polite {
			return "two wait by polling"
		}
		for _, by := range c.paused.by {
			if slices.Contains(o.call.paused.by, by) {
				return "two wait for one"
			}
		}
	}
	if cycle := r.m.cycle(c); cycle != nil {
		if !deadlock {
			return "deadlock"
		}
		for _, s := range cycle {
			if s != c.s && s.call.paused.polite || polite {
				return "deadlock of one that polls"
			}
		}
	}
	return ""
}

// cycle is the deadlock that the call is part of.
func (m *model) cycle(c *call) []*session {
	var walk func(path []*session, by []*session) []*session
	walk = func(path []*session, by []*session) []*session {
		for _, s := range by {
			if s == c.s {
				return path
			}
			if s.call != nil && !slices.Contains(path, s) {
				if found := walk(append(slices.Clone(path), s), s.call.paused.by); found != nil {
					return found
				}
			}
		}
		return nil
	}
	return walk([]*session{c.s}, c.paused.by)
}

// send starts the statement in the database.
func (r *run) send(c *call) {
	back := r.backends[c.s]
	if back.answers != nil {
		return
	}
	back.answers = make(chan answer, 1)
	back.shown, back.seen, back.stuck = nil, nil, nil
	sql, args := verbs[c.step.verb].sql(c)
	isBegin := c.step.verb == "begin_dialog"
	go func(conn *pgx.Conn, answers chan<- answer) {
		rows, err := textRows(r.ctx, conn, sql, args...)
		if err == nil && isBegin && len(rows) == 1 {
			var peer []string
			peer, err = textRows(r.ctx, conn, "select e.peer_handle from sb_internal.endpoint as e where e.conversation_handle = $1::text::uuid", rows[0])
			rows[0] += " " + strings.Join(peer, " ")
		}
		answers <- answer{rows, err}
	}(back.conn, back.answers)
}

// follow runs a call on until it ends or waits, and holds the database to it.
func (r *run) follow(c *call, isDone bool) *failure {
	r.send(c)
	back := r.backends[c.s]
	var got *answer
	for !isDone {
		switch {
		case c.paused.unsure != "":
			r.unsure = c.paused.unsure
			return nil
		case c.paused.by != nil:
			return r.expectWait(c)
		}
		a, f := r.await(c)
		if f != nil {
			return f
		}
		if a.err != nil {
			return r.fail("error", "%s: %s: %v", c.s.name, c.step.text, a.err)
		}
		got, c.got = &a, a.rows
		if name := c.step.get("as"); name != "" && len(a.rows) == 1 {
			r.names[name+".i"], r.names[name+".t"], _ = strings.Cut(a.rows[0], " ")
		}
		isDone = c.advance()
	}
	if got == nil {
		a, f := r.await(c)
		if f != nil {
			return f
		}
		got = &a
	}
	back.answers = nil
	c.s.call = nil
	code := pgtest.SQLState(got.err)
	switch {
	case code == "40P01" && code != c.code && r.counts["stuck"] > 0:
		// Whoever goes on waiting for a lock that is gone (isStuck) holds his place in the queue for the row meanwhile,
		// and may so be part of a deadlock that the locks alone do not show.
		r.unsure = "deadlock behind a lost lock"
		return nil
	case got.err != nil && code == "" || code != c.code:
		return r.fail("error", "%s: %s: got %q (%v), want %q", c.s.name, c.step.text, code, got.err, c.code)
	case c.bad != "":
		return r.fail("result", "%s: %s: %s", c.s.name, c.step.text, c.bad)
	case code == "" && c.rows != nil && !slices.Equal(c.rows, got.rows):
		return r.fail("result", "%s: %s: got %q, want %q", c.s.name, c.step.text, got.rows, c.rows)
	}
	switch {
	case code != "":
		r.m.fail(c.s)
	case !c.s.open:
		r.m.commit(c.s)
	}
	return nil
}

// await waits for the answer of a statement that nothing holds up.
func (r *run) await(c *call) (answer, *failure) {
	back := r.backends[c.s]
	deadline := time.After(patience)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for seen := 0; ; {
		select {
		case a := <-back.answers:
			return a, nil
		case <-deadline:
			return answer{}, r.fail("hang", "%s: %s", c.s.name, c.step.text)
		case <-tick.C:
			// Who polls for a lock makes others wait for a moment: only what lasts counts.
			pids, err := r.blockers(back)
			if err != nil {
				return answer{}, r.fail("activity", "%v", err)
			}
			if len(pids) == 0 {
				seen = 0
			} else if seen++; seen == 12 {
				return answer{}, r.fail("wait", "%s: %s: waits for %s, and must not", c.s.name, c.step.text, r.sessionNames(pids))
			}
		}
	}
}

func (r *run) blockers(back *backend) ([]uint32, error) {
	var pids []uint32
	err := r.control.QueryRow(r.ctx, "select pg_blocking_pids($1::integer)::bigint[]::oid[]", back.conn.PgConn().PID()).Scan(&pids)
	return pids, err
}

func (r *run) sessionNames(pids []uint32) string {
	var names []string
	for _, s := range r.m.sessions {
		if slices.Contains(pids, r.backends[s].conn.PgConn().PID()) {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ", ")
}

// expectWait makes sure that the database waits for whom the model says.
func (r *run) expectWait(c *call) *failure {
	back := r.backends[c.s]
	if cycle := r.m.cycle(c); cycle != nil {
		back.waitsFor(c.paused.by)
		return r.expectDeadlock(cycle)
	}
	if slices.Equal(back.shown, c.paused.by) {
		return nil
	}
	var wanted []string
	for _, by := range c.paused.by {
		wanted = append(wanted, by.name)
	}
	r.counts["waits"]++
	start, others := time.Now(), time.Now()
	for {
		select {
		case a := <-back.answers:
			back.answers <- a // for close
			return r.fail("wait", "%s: %s: must wait for %s, but answers %q (%v)", c.s.name, c.step.text, strings.Join(wanted, ", "), a.rows, a.err)
		default:
		}
		pids, err := r.blockers(back)
		if err != nil {
			return r.fail("activity", "%v", err)
		}
		if slices.ContainsFunc(c.paused.by, func(by *session) bool { return slices.Contains(pids, r.backends[by].conn.PgConn().PID()) }) {
			back.waitsFor(c.paused.by)
			return nil
		}
		if len(pids) == 0 {
			others = time.Now()
		}
		if time.Since(start) > patience || time.Since(others) > 3*time.Second {
			return r.fail("wait", "%s: %s: must wait for %s, waits for %q", c.s.name, c.step.text, strings.Join(wanted, ", "), r.sessionNames(pids))
		}
		time.Sleep(time.Millisecond)
	}
}

// expectDeadlock waits for the victim, which the database chooses.
func (r *run) expectDeadlock(cycle []*session) *failure {
	r.counts["deadlocks"]++
	for start := time.Now(); time.Since(start) < patience; time.Sleep(5 * time.Millisecond) {
		for _, s := range cycle {
			back := r.backends[s]
			select {
			case a := <-back.answers:
				if pgtest.SQLState(a.err) != "40P01" {
					back.answers <- a // somebody else was the victim, and this one went on
					continue
				}
				back.answers = nil
				s.call.stop()
				s.call = nil
				r.m.fail(s)
				return nil
			default:
			}
		}
	}
	return r.fail("deadlock", "nobody is the victim of %d sessions", len(cycle))
}

// settle lets everybody go on who can.
func (r *run) settle() *failure {
	for again := true; again; {
		again = false
		for _, s := range r.m.sessions {
			if s.call == nil || r.unsure != "" {
				continue
			}
			if isStuck, f := r.isStuck(s.call); f != nil {
				return f
			} else if isStuck {
				continue
			}
			isDone := s.call.advance()
			if !isDone && s.call.paused.by != nil {
				continue
			}
			again = true
			if f := r.follow(s.call, isDone); f != nil {
				return f
			}
		}
	}
	for _, s := range r.m.sessions {
		if s.call == nil || r.unsure != "" {
			continue
		}
		if why := r.mayNotWait(s.call, true); why != "" {
			r.unsure = why
			return nil
		}
		victims := r.counts["deadlocks"]
		if f := r.expectWait(s.call); f != nil {
			return f
		}
		if r.counts["deadlocks"] > victims {
			return r.settle()
		}
	}
	return nil
}

// isStuck: a part of the transaction that a call waits for was rolled back, and with it perhaps the lock. PostgreSQL tells
// waiters of that only when the lock was taken by the savepoint's own transaction id; one that was taken inside a block
// with an exception clause, or in a savepoint released since, has them wait for the end of the whole transaction. Both
// are right here: which one it is is read from the lock that is waited for.
func (r *run) isStuck(c *call) (bool, *failure) {
	back := r.backends[c.s]
	if back.stuck != nil {
		if back.stuck.s.transactions == back.stuck.transaction {
			return true, nil
		}
		back.stuck = nil
		return false, nil
	}
	for i, by := range back.shown {
		if !by.open || by.partial == back.seen[i] {
			continue
		}
		back.seen[i] = by.partial
		for start := time.Now(); len(back.answers) == 0; time.Sleep(time.Millisecond) {
			var waits, forAll bool
			if err := r.control.QueryRow(r.ctx, `
				select count(*) > 0, coalesce(bool_or(l.locktype = 'transactionid' and l.transactionid = a.backend_xid), false)
				  from pg_locks as l
				 cross join pg_stat_activity as a
				 where l.pid = $1::integer and not l.granted and a.pid = $2::integer and a.pid = any (pg_blocking_pids($1::integer))`,
				back.conn.PgConn().PID(), r.backends[by].conn.PgConn().PID()).Scan(&waits, &forAll); err != nil {
				return false, r.fail("activity", "%v", err)
			}
			if forAll {
				r.counts["stuck"]++
				back.stuck = &patient{by, by.transactions}
				return true, nil
			}
			// It may just be waking up.
			if !waits || time.Since(start) > 2*time.Second {
				break
			}
		}
	}
	return false, nil
}

// compare looks at the views, as everybody and as the session that did the step.
func (r *run) compare(st step) *failure {
	if f := r.compareView("everybody", r.control, r.m.committed); f != nil {
		return f
	}
	for _, s := range r.m.sessions {
		if s.name == st.who && s.open && !s.failed && s.call == nil {
			return r.compareView(s.name, r.backends[s].conn, r.m.view(s))
		}
	}
	return nil
}

func (r *run) compareView(who string, conn *pgx.Conn, w *world) *failure {
	got, err := textRows(r.ctx, conn, viewSQL)
	if err != nil {
		return r.fail("view", "%s: %v", who, err)
	}
	for i := range got {
		got[i] = words(got[i])
	}
	slices.Sort(got)
	want := w.lines(r.m.now)
	if slices.Equal(got, want) {
		return nil
	}
	var missing, extra []string
	for _, line := range want {
		if !slices.Contains(got, line) {
			missing = append(missing, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			extra = append(extra, line)
		}
	}
	if missing == nil && extra == nil {
		return r.fail("view", "%s: the same twice: %s", who, cmp.Diff(want, got))
	}
	return r.fail("view", "%s: not shown:\n  %s\nshown instead:\n  %s", who, strings.Join(missing, "\n  "), strings.Join(extra, "\n  "))
}

// finish ends everything and looks for what is left over.
func (r *run) finish() *failure {
	do := func(args ...string) *failure {
		if r.unsure != "" {
			return nil
		}
		return r.do(newStep(args[0], args[1], args[2:]...))
	}
	isOpen := func(s *session) bool { return s.open || s.call != nil }
	for n := 0; slices.ContainsFunc(r.m.sessions, isOpen) && r.unsure == ""; n++ {
		for _, s := range r.m.sessions {
			if s.open && s.call == nil {
				if f := do(s.name, "commit"); f != nil {
					return f
				}
			}
		}
		if n == 20 {
			return r.fail("finish", "sessions wait for nobody")
		}
	}
	for _, args := range [][]string{
		{"s1", "alter_queue", "name", "QA", "enabled", "true"},
		{"s1", "alter_queue", "name", "QB", "enabled", "true"},
		{"s1", "deliver"},
	} {
		if f := do(args...); f != nil {
			return f
		}
	}
	for _, queue := range []string{"QA", "QB"} {
		for r.unsure == "" && len((&call{model: r.m, s: r.m.sessions[0]}).claimable(r.m.committed, queue)) > 0 {
			if f := do("s1", "receive", "from", queue); f != nil {
				return f
			}
			if f := do("clock", "tick", "by", "150ms"); f != nil {
				return f
			}
		}
	}
	if r.unsure != "" {
		return nil
	}
	if bad := r.m.committed.judge(); bad != "" {
		return r.fail("ledger", "%s", bad)
	}
	for _, name := range r.sides() {
		s, ok := r.m.committed.sides[r.names[name]]
		if !ok {
			continue
		}
		how := ""
		if s.state == disconnectedOutbound || len(s.waiting) > 0 {
			how = "yes" // what waits for nobody
		}
		if f := do("s1", "end", "on", name, "cleanup", how); f != nil {
			return f
		}
	}
	if f := do("s1", "maintain"); f != nil {
		return f
	}
	var left string
	if err := r.control.QueryRow(r.ctx, "select public.model_baseline()").Scan(&left); err != nil {
		return r.fail("left over", "%v", err)
	}
	if left != r.baseline {
		return r.fail("left over", "%s", cmp.Diff(strings.Split(r.baseline, ", "), strings.Split(left, ", ")))
	}
	locks, err := textRows(r.ctx, r.control, `select l.mode || ' of ' || l.pid from pg_locks as l where l.locktype = 'advisory'
		and l.database = (select d.oid from pg_database as d where d.datname = current_database())`)
	if err != nil || len(locks) > 0 {
		return r.fail("left over", "advisory locks %q (%v)", locks, err)
	}
	return nil
}

// sides are the names of all sides, in the order in which they began.
func (r *run) sides() []string {
	var names []string
	for name := range r.names {
		if strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// judge looks at the ledger alone, so that model and database cannot be wrong together: in each direction what was heard
// is what was said, in order, none twice, and all of it unless the hearer ended, or the speaker in a way that drops.
func (w *world) judge() string {
	for h, s := range w.sides {
		if s.state == disconnectedOutbound {
			continue
		}
		said, heard := w.spoke[s.peer], w.heard[h]
		if len(heard) > len(said) || !slices.Equal(said[:len(heard)], heard) {
			return fmt.Sprintf("%s said %q, and %s heard %q", s.peer, said, h, heard)
		}
		peer, ok := w.sides[s.peer]
		isWhole := ok && peer.state == conversing && s.state == conversing && peer.lifetime == 0 || !ok && w.ended[s.peer] == "plain" && s.state == disconnectedInbound
		if isWhole && len(heard) != len(said) {
			return fmt.Sprintf("%s said %d messages, and %s heard %d", s.peer, len(said), h, len(heard))
		}
	}
	return ""
}

// outcome is a whole run.
type outcome struct {
	script script
	failed *failure
	unsure string
	counts map[string]int
}

// random runs steps chosen at random.
func (b *bench) random(seed uint64, length int) outcome {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	cfg := config{priorities: g.chance(50), poison: g.chance(30)}
	r := b.start(cfg)
	defer r.close()
	g.m, g.names = r.m, r.names
	var f *failure
	for f == nil && r.unsure == "" && r.step < length {
		for _, st := range g.next() {
			if f = r.do(st); f != nil || r.unsure != "" {
				break
			}
		}
	}
	return r.end(f)
}

// replay runs a script.
func (b *bench) replay(s script) outcome {
	r := b.start(s.config)
	defer r.close()
	var f *failure
	for _, st := range s.steps {
		if f = r.do(st); f != nil || r.unsure != "" {
			break
		}
	}
	return r.end(f)
}

// end is the end of a run whose steps are done: what is left is brought to its end, too, and is no part of the script.
func (r *run) end(f *failure) outcome {
	o := outcome{script: script{r.m.config, slices.Clone(r.did)}, failed: f}
	if f == nil && r.unsure == "" {
		o.failed = r.finish()
	}
	o.unsure, o.counts = r.unsure, r.counts
	return o
}
