package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// stage is newTalk's application whose RightQueue has an activation procedure, and a role for activators.
type stage struct {
	*testing.T
	db       *pgtest.DB
	a, super *pgtest.Session
	login    string // of activators
	executor string // of the procedure
	log      pgtest.Buffer
}

// newStage makes RightQueue active with function or procedure app.handle of the body, for up to three readers.
func newStage(t *testing.T, kind, body string) *stage {
	t.Helper()
	db, a, _ := newTalk(t)
	s := &stage{T: t, db: db, a: a, super: db.SessionAs(t, "super", "")}
	s.login, s.executor = db.CreateRole(t, "activator"), db.CreateRole(t, "executor")
	s.super.Exec(fmt.Sprintf("grant %s to %s, %s", s.executor, s.login, db.Owner))
	s.super.Exec("create table public.seen (body text, pid integer default pg_backend_pid(), began timestamptz default clock_timestamp(), until timestamptz)")
	s.super.Exec(fmt.Sprintf("grant all on public.seen to %s, %s", s.executor, db.Owner))
	a.Exec("create schema app")
	a.Exec("grant usage on schema app to " + s.executor)
	a.Exec("select sb.grant_admin($1), sb.grant_receive('RightQueue', $2)", s.login, s.executor)
	s.create(kind, "handle", body)
	a.Exec("select sb.alter_queue('RightQueue', activation_procedure => 'app.handle', max_queue_readers => 3, execute_as => $1)", s.executor)
	return s
}

// create makes or replaces a function or procedure in schema app.
func (s *stage) create(kind, name, body string) {
	s.Helper()
	returns := map[string]string{"function": "returns void"}[kind]
	s.a.Exec(fmt.Sprintf("create or replace %s app.%s() %s language plpgsql as $$%s$$", kind, name, returns, body))
}

// run runs an activator until the test ends.
func (s *stage) run() {
	s.Helper()
	a, err := activator.New(activator.Config{DatabaseURL: s.db.URLAs(s.login), Logger: slog.New(slog.NewTextHandler(&s.log, nil))})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.Error(err)
		}
	})
}

// eventually waits until a query returns the value.
func (s *stage) eventually(what, sql, value string) {
	s.Helper()
	var got string
	defer func() {
		if got != value {
			s.Logf("%s: got %q, want %q", what, got, value)
		}
	}()
	pgtest.Eventually(s.T, 30*time.Second, func() bool {
		got = s.a.Value(sql)
		return got == value
	})
}

const seen = "select coalesce(string_agg(body, ' ' order by began), '') from public.seen"

// atGate counts the calls that wait for advisory lock 1, which the test holds.
const atGate = `
select count(*) from pg_locks as l join pg_stat_activity as a on a.pid = l.pid and a.datname = current_database()
 where l.locktype = 'advisory' and l.classid = 0 and l.objid = 1 and not l.granted`

// takeOne is a body that receives one message, notes it and ends its conversation.
const takeOne = `
declare
  m record;
begin
  select r.* into m from sb.receive('RightQueue', 1) as r;
  if found then
    insert into public.seen values (sb.body_text(m.message_body));
    perform sb.end_conversation(m.conversation_handle);
  end if;
end`

// A role without the right to call the procedure, and a procedure that is gone: both are seen when it is to be
// called, in the log, and the queue fills meanwhile.
func TestProcedureThatCannotBeCalled(t *testing.T) {
	t.Parallel()
	s := newStage(t, "function", takeOne)
	// Rules
	s.a.Exec("revoke all on function app.handle from public")
	s.run()
	start(s.a, "one")
	pgtest.Eventually(t, 30*time.Second, func() bool { return strings.Contains(s.log.String(), "permission denied for function handle") })
	start(s.a, "two")
	want(t, "waiting, and nothing is counted", s.a.Query("select ready_messages, is_on, consecutive_rollbacks from sb.queue_statistics where queue_name = 'RightQueue'"), "2|t|0")
	s.a.Exec("grant execute on function app.handle to " + s.executor)
	s.a.Exec("select sb.alter_queue('RightQueue', max_queue_readers => 2)") // looks at once
	s.eventually("handled, by two at a time", "select coalesce(string_agg(body, ' ' order by body), '') from public.seen", "one two")
	s.a.Exec("drop function app.handle")
	start(s.a, "three")
	pgtest.Eventually(t, 30*time.Second, func() bool {
		return strings.Contains(s.log.String(), "app.handle") && strings.Contains(s.log.String(), "does not exist")
	})
	s.create("function", "handle", takeOne)
	s.eventually("made again", seen, "one two three")
}

// What runs is left alone, whatever is done to its queue meanwhile.
func TestRunningProcedureIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newStage(t, "procedure", `
declare
  m record;
begin
  select r.* into m from sb.receive('RightQueue', 1) as r;
  perform sb.end_conversation(m.conversation_handle);
  insert into public.seen values ('received ' || sb.body_text(m.message_body));
  commit;
  perform pg_advisory_xact_lock(1);
  insert into public.seen values ('finished ' || sb.body_text(m.message_body));
end`)
	// Rules
	gate := s.db.Session(t, "gate")
	gate.Exec("select pg_advisory_lock(1)")
	s.run()
	start(s.a, "one")
	s.eventually("received", seen, "received one") // the queue is empty now
	s.create("function", "other", takeOne)
	s.a.Exec("select sb.alter_queue('RightQueue', activation_procedure => 'app.other')")
	s.a.Exec("select sb.alter_queue('RightQueue', max_queue_readers => 0)")
	s.a.Exec("select sb.alter_queue('RightQueue', activation_enabled => false)")
	start(s.a, "two")
	s.a.Exec("select sb.alter_queue('RightQueue', enabled => false)")
	s.eventually("still there", "select string_agg(procedure_name, ' ') from sb.dm_broker_activated_tasks", "app.handle")
	gate.Exec("select pg_advisory_unlock(1)")
	s.eventually("finished", seen, "received one finished one")
	// Switched on again with what has come meanwhile there, the new procedure is started without a further message.
	s.a.Exec("select sb.alter_queue('RightQueue', enabled => true, max_queue_readers => 1, activation_enabled => true)")
	s.eventually("the other", seen, "received one finished one two")
}

// Stop, replace, start: what has come meanwhile is for the new procedure.
func TestReplaceProcedureOfStoppedQueue(t *testing.T) {
	t.Parallel()
	s := newStage(t, "function", takeOne)
	// Rules
	s.run()
	start(s.a, "one")
	s.eventually("the old one", seen, "one")
	s.a.Exec(stopRight)
	start(s.a, "two")
	s.create("function", "handle", strings.Replace(takeOne, "sb.body_text(m.message_body)", "'new ' || sb.body_text(m.message_body)", 1))
	s.a.Exec(startRight)
	s.eventually("the new one", seen, "one new two")
}

// A backlog of one group is for one reader, however many there may be; a queue that somebody receives from cannot be
// dropped under him.
func TestOneGroupOneReader(t *testing.T) {
	t.Parallel()
	s := newStage(t, "function", `
declare
  m record;
  t timestamptz;
begin
  for m in select r.* from sb.receive('RightQueue', 1) as r loop
    t := clock_timestamp(); -- called earlier, it may have found the group just given free
    perform pg_sleep(0.01);
    insert into public.seen values (sb.body_text(m.message_body), pg_backend_pid(), t, clock_timestamp());
  end loop;
end`)
	// Rules
	left, _ := start(s.a, "0")
	for i := range 29 {
		say(s.a, left, fmt.Sprint(i+1))
	}
	s.run()
	s.eventually("all", "select count(*) from public.seen", "30")
	want(t, "work at the same time", s.a.Query("select count(*) from public.seen as p join public.seen as o on o.ctid <> p.ctid and o.began < p.until and p.began < o.until"), "0")
	want(t, "in order", s.a.Query("select bool_and(body::integer = n) from (select body, row_number() over (order by began) - 1 as n from public.seen) as o"), "t")
}

// A queue is not dropped under what runs on it; afterwards its activation is over.
func TestDropQueueOfRunningProcedure(t *testing.T) {
	t.Parallel()
	s := newStage(t, "function", `
declare
  m record;
begin
  for m in select r.* from sb.receive('RightQueue', 1) as r loop
    insert into public.seen values (sb.body_text(m.message_body));
    perform sb.end_conversation(m.conversation_handle);
    perform pg_advisory_xact_lock(1);
  end loop;
end`)
	// Rules
	gate := s.db.Session(t, "gate")
	gate.Exec("select pg_advisory_lock(1)")
	start(s.a, "one")
	s.run()
	s.eventually("it runs", atGate, "1")
	dropper := s.db.Session(t, "dropper")
	dropped := dropper.GoExec("do $$ begin perform sb.drop_service('Right'); perform sb.drop_queue('RightQueue'); end $$")
	pgtest.Eventually(t, 30*time.Second, func() bool { // of whom, the activator knows
		return s.a.Value("select cardinality(pg_blocking_pids($1::integer)) > 0", dropper.PID()) == "t"
	})
	gate.Exec("select pg_advisory_unlock(1)")
	if err := wait(t, dropped); err != nil {
		t.Fatal(err)
	}
	want(t, "it has finished", s.a.Query(seen), "one")
	s.eventually("no task is left", "select count(*) from sb.dm_broker_activated_tasks", "0")
	want(t, "no monitor is left", s.a.Query("select * from sb.dm_broker_queue_monitors"))
}

// What cannot be delivered is tried again after 4 s, 8 s and so on. In this database the look whether it can be is a
// spy.
func TestRetriesOfDelivery(t *testing.T) {
	t.Parallel()
	s := newStage(t, "function", takeOne)
	// Rules: R-285
	s.a.Exec(`
create table public.tries (at timestamptz not null);
create or replace function sb_internal._undeliverable(service_name text, broker_instance text default null)
  returns text language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into public.tries values (clock_timestamp());
  return 'never';
end $$`)
	s.a.Exec("select sb.create_route('away', 'remote://elsewhere', 'Right')")
	start(s.a, "waits")
	s.a.Exec("delete from public.tries")
	s.run()
	// What is tried at the start and for the message is not a retry.
	const pauses = `
select p.pause from (select t.at, extract(epoch from t.at - lag(t.at) over (order by t.at)) as pause from public.tries as t) as p
 where p.pause > 3 order by p.at limit 2`
	pgtest.Eventually(t, time.Minute, func() bool {
		time.Sleep(100 * time.Millisecond) // there is no hurry
		return len(s.a.Query(pauses)) == 2
	})
	t.Logf("pauses %q of tries %q", s.a.Query(pauses), s.a.Query("select at from public.tries order by 1"))
	want(t, "the second pause is longer, by four seconds on an idle machine", s.a.Query(`
select p.pauses[2] - p.pauses[1] > 1.5 from (select array(`+pauses+`) as pauses) as p`), "t")
	want(t, "still waiting", s.a.Query("select count(*) from sb.transmission_queue"), "1")
}

// The role of an activated procedure is an identity, not a cage.
func TestExecuteAsCanBeReset(t *testing.T) {
	t.Parallel()
	s := newStage(t, "function", `
declare
  inside text := current_user;
begin
  perform from sb.receive('RightQueue', 1);
  if found then
    set role none;
    insert into public.seen values (inside || ' ' || current_user || ' ' || session_user);
  end if;
end`)
	// Rules
	s.super.Exec("grant insert on public.seen to " + s.login)
	start(s.a, "x")
	s.run()
	s.eventually("who it was", seen, s.executor+" "+s.login+" "+s.login)
}

// Between the look that starts a procedure and its receive somebody else may have been faster.
func TestProcedureFindsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, "function", `
begin
  perform pg_advisory_xact_lock(1);
  insert into public.seen select count(*) from sb.receive('RightQueue', 1);
end`)
	// Rules: R-326
	s.a.Exec("select sb.alter_queue('RightQueue', max_queue_readers => 1)")
	gate := s.db.Session(t, "gate")
	gate.Exec("select pg_advisory_lock(1)")
	start(s.a, "x")
	s.run()
	s.eventually("it is called", atGate, "1")
	want(t, "somebody is faster", take(s.a, "'RightQueue'"), "x")
	gate.Exec("select pg_advisory_unlock(1)")
	s.eventually("it finds nothing", seen, "0")
}
