//go:build linux

package proof

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// askEach sends a message each to services, from the service "client".
const askEach = `
select sb.send(sb.begin_dialog('client', service), 'DEFAULT', 'x') from unnest($1::text[]) as service`

// serve makes a queue and service with a procedure of the body.
func (s *stage) serve(name, kind, body string, readers int) {
	s.Helper()
	s.procedure(name, kind, body)
	s.exec(fmt.Sprintf(`
select sb.create_queue('%[1]s', activation_procedure => 'app.%[1]s', max_queue_readers => %[2]d);
select sb.create_service('%[1]s', '%[1]s', '{DEFAULT}')`, name, readers))
}

func (s *stage) procedure(name, kind, body string) {
	s.Helper()
	returns := map[string]string{"function": "returns void"}[kind]
	s.exec(fmt.Sprintf("create or replace %s app.%s() %s language plpgsql as $$%s$$", kind, name, returns, body))
}

// office is a stage with a client that only asks, and a diary.
func office(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.exec(`
create schema app;
create table public.diary (what text, pid integer default pg_backend_pid(), began timestamptz default clock_timestamp(), until timestamptz);
select sb.create_queue('client');
select sb.create_service('client', 'client')`)
	return s
}

// takeOne receives a message, works on it for a time, and ends the dialog.
func takeOne(queue string, seconds float64) string {
	return fmt.Sprintf(`
declare
  began timestamptz := clock_timestamp();
  m record;
begin
  for m in select r.* from sb.receive('%[1]s', 1) as r loop
    perform pg_sleep(%[2]g);
    perform sb.end_conversation(m.conversation_handle);
    insert into public.diary values ('%[1]s', pg_backend_pid(), began, clock_timestamp());
  end loop;
end`, queue, seconds)
}

// Procedures that never receive, and those that fail before they do, are called again after pauses that double, by all
// activators together; the monitors show it beside those of a queue that is well and of one that has nothing to do.
func TestGuards(t *testing.T) {
	t.Parallel()
	s := office(t)
	s.serve("never", "function", "begin insert into public.diary values ('never'); end", 3)
	s.serve("fails", "procedure", "begin insert into public.diary values ('fails'); commit; raise exception 'at once'; end", 3)
	s.serve("busy", "function", takeOne("busy", 1), 1)
	s.serve("idle", "function", takeOne("idle", 0), 1)
	s.exec(askEach, []string{"never", "never", "never", "fails", "fails", "fails"})
	s.exec("select sb.send(sb.begin_dialog('client', 'busy'), 'DEFAULT', 'x') from generate_series(1, 100)")
	p := s.start()
	const monitors = `
select string_agg(queue_name || ' ' || state, ', ' order by queue_name)
  from sb.dm_broker_queue_monitors where last_activated_time is not null or queue_name = 'idle'`
	s.eventually("states", "select ("+monitors+") = 'busy RECEIVES_OCCURRING, fails NOTIFIED, idle INACTIVE, never NOTIFIED'")
	s.eventually("called again and again", `
select min(n) >= 6 from (select count(*) as n from public.diary where what in ('never', 'fails') group by what) as c`)
	if got := value[string](s, monitors); got != "busy RECEIVES_OCCURRING, fails NOTIFIED, idle INACTIVE, never NOTIFIED" {
		t.Error(got)
	}
	// 0.1 s, 0.2 s and so on, a fifth less at most; the first calls may have been several at the same time.
	s.none("called too often", `
select * from (
  select what, count(*) as calls, extract(epoch from max(began) - min(began)) as seconds from public.diary where what <> 'busy' group by what) as c
 where seconds < 0.8 * 0.1 * (power(2, calls - 3) - 1)`)
	for _, name := range []string{"never", "fails"} {
		s.procedure(name, map[string]string{"never": "function", "fails": "procedure"}[name], takeOne(name, 0))
	}
	s.within(atMost(10*time.Second), "mended", `
select count(*) = 6 from public.diary where until is not null and what in ('never', 'fails')`) // the plan is read every 5 s
	p.stop()
}

// Readers are added as long as there are groups that nobody holds, over two activators up to the limit, which may change
// meanwhile; without work readers and then their connections go.
func TestScale(t *testing.T) {
	t.Parallel()
	s := office(t)
	s.serve("work", "function", takeOne("work", 1), 6)
	var activators []*process
	for range 2 {
		activators = append(activators, s.start("SBACTIVATOR_ACTIVATION_IDLE_TIMEOUT=1s", "SBACTIVATOR_ACTIVATION_POLL_INTERVAL=1s"))
	}
	s.eventually("both listen", "select ("+listeners+") = 2")
	send := func(n int) {
		s.exec("select sb.send(sb.begin_dialog('client', 'work'), 'DEFAULT', 'x') from generate_series(1, $1::integer)", n)
	}
	const (
		slots = `
select count(*) from pg_locks as l join pg_database as d on d.oid = l.database
 where d.datname = current_database() and l.locktype = 'advisory' and l.objsubid = 1 and l.granted`
		left = "select count(*) from sb.queue_messages where queue_name = 'work'"
	)
	send(18)
	s.eventually("six readers", "select ("+slots+") = 6")
	s.eventually("six tasks", "select count(*) = 6 from sb.dm_broker_activated_tasks where procedure_name = 'app.work'")
	s.eventually("all done", "select ("+left+") = 0")
	ramp := value[float64](s, `
select extract(epoch from max(began) - min(began))::float8 from (select min(began) as began from public.diary group by pid order by 1 limit 6) as r`)
	t.Logf("six readers within %.2f s", ramp)
	if ramp > atMost(time.Second).Seconds() {
		t.Errorf("six readers within %.2f s", ramp)
	}
	// A limit that is changed counts for what is there, without a word to the activators.
	limit := func(n int) {
		s.exec("select sb.alter_queue('work', max_queue_readers => $1)", n)
	}
	send(30)
	s.eventually("six readers again", "select ("+slots+") = 6")
	limit(2)
	s.eventually("two readers", "select ("+slots+") = 2")
	began := value[time.Time](s, "select clock_timestamp()")
	limit(0)
	s.eventually("none", "select ("+slots+") = 0")
	before := value[int](s, left)
	if before == 0 {
		t.Error("nothing is left to prove anything with")
	}
	time.Sleep(1500 * time.Millisecond) // more than a poll interval
	if n := value[int](s, left); n != before {
		t.Errorf("%d messages of %d left without a reader", n, before)
	}
	limit(4)
	s.eventually("four readers", "select ("+slots+") = 4")
	s.eventually("all done", "select ("+left+") = 0")
	s.exec("delete from public.diary where began < $1", began)
	s.none("more than four at the same time", `
select * from (
  select at, sum(change) over (order by at, change) as readers
    from (select began as at, 1 as change from public.diary union all select until, -1 from public.diary) as changes) as o
 where readers > 4`)
	s.eventually("nobody is shown", "select not exists (select from sb.dm_broker_activated_tasks)")
	s.eventually("inactive", `
select state = 'INACTIVE' and last_empty_rowset_time > last_activated_time - interval '1 minute'
  from sb.dm_broker_queue_monitors where queue_name = 'work'`)
	// The listener, and what the activator itself asks with.
	s.eventually("the readers' connections are closed", `
select count(*) <= 2 * 4 from pg_stat_activity where datname = current_database() and application_name like 'sbactivator %'`)
	for _, p := range activators {
		p.stop()
	}
}

// Queues are created, given to another owner, dropped, and created again with another procedure, while three activators are at
// work on them and on others.
func TestQueuesComeAndGo(t *testing.T) {
	t.Parallel()
	s := office(t)
	super, err := pgx.Connect(t.Context(), s.url(""))
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(super)
	heir := s.owner + "_heir"
	if _, err := super.Exec(t.Context(), fmt.Sprintf(`
create role %[1]s; grant %[1]s to %[2]s, %[3]s; grant usage on schema app to %[1]s; grant insert on public.diary to %[1]s`, heir, s.owner, s.login)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), s.url(""))
		if err == nil {
			_, err = conn.Exec(context.Background(), "drop owned by "+heir+" cascade; drop role "+heir)
			closeConn(conn)
		}
		if err != nil {
			t.Error(err)
		}
	})
	steady := s.lane(0)
	var activators []*process
	for range 3 {
		activators = append(activators, s.start())
	}
	var (
		group sync.WaitGroup
		asked int
	)
	ctx, cancel := context.WithCancel(t.Context())
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		for ; ctx.Err() == nil && !t.Failed(); asked++ {
			callCtx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if _, err := steady.ask(callCtx, 0, fmt.Sprint(asked)); err != nil {
				t.Error(err)
			}
			cancel()
		}
	})
	const rounds = 4
	for round := range rounds {
		what := fmt.Sprint("round ", round)
		body := fmt.Sprintf(`
declare
  m record;
begin
  for m in select r.* from sb.receive('passing') as r loop
    insert into public.diary values ('%s ' || current_user);
    if m.message_type_name like '%%EndDialog' then
      perform sb.end_conversation(m.conversation_handle);
    end if;
  end loop;
end`, what)
		s.serve("passing", "function", body, 3)
		handles := pgtest.Strings(t, s.pool, "select sb.begin_dialog('client', 'passing') from generate_series(1, 5)")
		send := func() {
			s.exec("select sb.send(h, 'DEFAULT', 'x') from unnest($1::text[]::uuid[]) as h", handles)
		}
		send()
		s.eventually("handled by the owner", "select count(*) = 5 from public.diary where what = $1", what+" "+s.owner)
		s.exec("select sb.alter_authorization('queue', 'passing', $1)", heir)
		if round%2 == 0 {
			s.exec("select sb.alter_queue('passing', execute_as => $1)", heir)
			for sent := 10; ; sent += 5 { // those who are at work go on as the owner
				send()
				s.eventually("handled", "select count(*) = $2 from public.diary where what like $1", what+" %", sent)
				if value[bool](s, "select exists (select from public.diary where what = $1)", what+" "+heir) {
					break
				}
			}
		} else { // dropped with what is in it, and what is at work
			send()
		}
		s.exec("select sb.drop_service('passing')")
		s.exec("select sb.drop_queue('passing')")
		s.exec("select sb.end_conversation(h, cleanup => true) from unnest($1::text[]::uuid[]) as h", handles)
	}
	cancel()
	group.Wait()
	if asked == 0 {
		t.Error("the other queue was not served")
	}
	t.Logf("%d questions meanwhile", asked)
	s.eventually("no task is left", "select not exists (select from sb.dm_broker_activated_tasks where queue_name = 'passing')")
	for _, p := range activators {
		p.stop()
	}
}

// An activator sleeps until the next thing is due, and asks nothing meanwhile but whether the server is still there.
func TestSleeps(t *testing.T) {
	t.Parallel()
	s := office(t)
	s.serve("clock", "function", `
declare
  m record;
begin
  for m in select r.* from sb.receive('clock') as r loop
    insert into public.diary values (substring(m.message_type_name from '[A-Za-z]+$'));
  end loop;
end`, 1)
	network := newProxy(t, s.url(s.login))
	p := start(t, network.url, "SBACTIVATOR_ACTIVATION_POLL_INTERVAL=1h")
	s.eventually("it listens", "select ("+listeners+") = 1")
	s.exec(askEach, []string{"clock"})
	s.eventually("it works", "select count(*) = 1 from public.diary")
	s.exec("delete from public.diary")
	s.exec(`
with d as (select sb.begin_dialog('clock', 'client', lifetime => interval '9 s') as h),
     begun as (insert into public.diary values ('begun'))
select sb.begin_conversation_timer(h, interval '6 s') from d`)
	time.Sleep(2 * time.Second) // it takes note, and falls asleep
	before := network.answers.Load()
	time.Sleep(3 * time.Second)
	asked := network.answers.Load() - before
	s.none("too early", "select * from public.diary where what <> 'begun'")
	s.eventually("timer, and the end of its life", "select array_agg(what order by began) = '{begun,DialogTimer,Error}' from public.diary")
	late := value[float64](s, `
select max(extract(epoch from d.began - b.began - case d.what when 'Error' then interval '9 s' else interval '6 s' end))::float8
  from public.diary as d join public.diary as b on b.what = 'begun' where d.what <> 'begun'`)
	t.Logf("%d statements in 3 s asleep; then at most %.2f s late", asked, late)
	if late > atMost(time.Second).Seconds() {
		t.Errorf("%.2f s late", late)
	}
	// One heartbeat, and the housekeeper's question.
	if asked > 3 {
		t.Errorf("%d statements while it slept", asked)
	}
	p.stop()
}
