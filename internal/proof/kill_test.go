//go:build linux

package proof

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// limits are the queues of the load, and how many readers they may have: a function receives from desk, clerks from bench,
// and a procedure that commits takes the clerks' answers from client.
var limits = map[string]int{"desk": 3, "bench": 2, "client": 2}

// openShop makes the queues, their handlers, and the books: what is sent and what is handled is written down in the
// transaction in which it happens.
const openShop = `
create schema app;
create table public.sent (handle uuid, n integer, at timestamptz not null default clock_timestamp(), primary key (handle, n));
create table public.ledger (id bigint generated always as identity primary key, queue text not null, handle uuid not null, n integer not null,
  worker text not null, began timestamptz not null, until timestamptz not null, at timestamptz not null default clock_timestamp());
create table public.event (at timestamptz not null default clock_timestamp(), what text not null);
create function app.desk() returns void language plpgsql as $$
declare
  began timestamptz := clock_timestamp();
  m record;
begin
  for m in select sb.body_text(r.message_body) as body from sb.receive('desk', max_messages => 3) as r loop
    perform pg_sleep(case when random() < 0.01 then 0.5 else random() * 0.01 end);
    insert into public.ledger (queue, handle, n, worker, began, until)
    values ('desk', split_part(m.body, ' ', 1)::uuid, split_part(m.body, ' ', 2)::integer, pg_backend_pid(), began, clock_timestamp());
  end loop;
end $$;
create procedure app.client() language plpgsql as $$
declare
  began timestamptz;
  m record;
  is_empty boolean;
begin
  loop
    began := clock_timestamp();
    is_empty := true;
    for m in select string_to_array(sb.body_text(r.message_body), ' ') as body from sb.receive('client', max_messages => 3) as r loop
      is_empty := false;
      insert into public.ledger (queue, handle, n, worker, began, until)
      values ('bench', m.body[1]::uuid, m.body[2]::integer, m.body[3],
              to_timestamp(m.body[4]::bigint / 1e6), to_timestamp(m.body[5]::bigint / 1e6)),
             ('client', m.body[1]::uuid, m.body[2]::integer, pg_backend_pid(), began, clock_timestamp());
    end loop;
    commit;
    exit when is_empty;
  end loop;
end $$;
select sb.create_queue('desk', activation_procedure => 'app.desk', max_queue_readers => 3);
select sb.create_queue('bench', max_queue_readers => 2);
select sb.create_queue('client', activation_procedure => 'app.client', max_queue_readers => 2);
select sb.create_service(name, name, '{DEFAULT}') from unnest(array['desk', 'bench', 'client']) as name`

// Three activators on one database are killed and stopped, and the server is, at random and under load, for 40 s in the gate
// and for SBROKER_SOAK in TestSoakKills (make soak SBROKER_SOAK=5m is five minutes): every message is handled exactly once,
// in the order of its conversation; no queue has more readers than it may have at any instant; no queue is stopped; each
// message is handled within 5 s after it was sent, or after the last blow that fell meanwhile, when that was later.
func TestKills(t *testing.T) {
	t.Parallel()
	underFire(t, 40*time.Second)
}

// TestSoakKills is TestKills for SBROKER_SOAK.
func TestSoakKills(t *testing.T) { underFire(t, soak(t)) }

func underFire(t *testing.T, d time.Duration) {
	c, s := newCluster(t)
	s.exec(openShop)
	dir := t.TempDir()
	f := &fire{stage: s, c: c, launch: func() *process { return s.start(clerkSettings(t, dir, limits["bench"]+1, "bench")) }}
	for range 3 {
		f.activators = append(f.activators, f.launch())
	}
	handles := pgtest.Strings(t, s.pool, `
select sb.begin_dialog('client', case n % 2 when 0 then 'desk' else 'bench' end) from generate_series(1, 16) as n`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load, watch sync.WaitGroup
	sending, stop := context.WithTimeout(ctx, d)
	defer stop()
	for i := range 4 {
		load.Go(func() { f.send(sending, handles[4*i:4*i+4]) })
	}
	watch.Go(func() { f.watchReaders(ctx) })

	blows := map[string]func(){
		"activator killed": func() { f.replace((*process).kill) }, "activator stopped": func() { f.replace((*process).stop) },
		"server killed": f.killServer, "server stopped at once": f.quitServer, "backend killed": f.killBackend,
	}
	names := slices.Sorted(maps.Keys(blows))
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	count := map[string]int{}
	for round := 0; ; round++ { // one of each at least, in any order
		pause := 2000
		if round > len(names) {
			pause = 5000
		}
		select {
		case <-time.After(time.Duration(500+rand.IntN(pause)) * time.Millisecond):
		case <-sending.Done():
		}
		if sending.Err() != nil {
			break
		}
		name := names[rand.IntN(len(names))]
		if round < len(names) {
			name = names[round]
		}
		blows[name]()
		count[name]++
	}
	load.Wait()
	s.within(time.Minute, "all is handled", `
select count(*) = (select count(*) from public.sent) from public.ledger where queue in ('desk', 'client')`)
	for _, p := range f.activators {
		p.stop()
	}
	cancel()
	watch.Wait()
	f.checkBooks()
	s.noneLeft(dir)
	t.Logf("%d messages; %v; readers were counted %d times, and were at most %v",
		value[int](s, "select count(*) from public.sent"), count, f.samples, f.most)
	t.Logf("the longest time to handle a message after a blow or its sending: %.2f s; to listen again after a blow to the server: %.2f s",
		f.slowest, f.listening.Seconds())
	if f.samples < 100 || len(count) < len(names) {
		t.Error("too few to prove anything")
	}
}

// fire is activators at work while blows fall.
type fire struct {
	*stage
	c          *cluster
	launch     func() *process
	activators []*process

	samples   int            // of the readers
	most      map[string]int // of them, by queue
	slowest   float64        // seconds
	listening time.Duration
}

// send sends on the dialogs until ctx ends, also while there is no server.
func (f *fire) send(ctx context.Context, handles []string) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			closeConn(conn)
		}
	}()
	for ctx.Err() == nil {
		var err error
		if conn == nil || conn.IsClosed() {
			if conn, err = pgx.Connect(ctx, f.url(f.owner)); err != nil {
				conn = nil
			}
		}
		if err == nil {
			// Not cut short: a statement in doubt is one that the server has left in doubt.
			_, err = conn.Exec(context.WithoutCancel(ctx), `
with sent as (
  insert into public.sent (handle, n)
  select $1::text::uuid, coalesce(max(s.n), 0) + 1 from public.sent as s where s.handle = $1::text::uuid
  returning handle, n)
select sb.send(handle, 'DEFAULT', handle || ' ' || n) from sent`, handles[rand.IntN(len(handles))])
			if code := pgtest.SQLState(err); code != "" && code[:2] != "57" && code[:2] != "08" {
				f.Errorf("send: %v", err)
				return
			}
		}
		time.Sleep(time.Duration(rand.ExpFloat64() * float64(40*time.Millisecond)))
	}
}

// watchReaders counts readers by the locks that they hold, on a connection that is no part of anything.
func (f *fire) watchReaders(ctx context.Context) {
	f.most = map[string]int{}
	var conn *pgx.Conn
	for ctx.Err() == nil {
		var err error
		if conn == nil {
			if conn, err = pgx.Connect(ctx, f.url("")); err != nil {
				conn = nil
				time.Sleep(20 * time.Millisecond)
				continue
			}
		}
		// One moment: PostgreSQL holds still for it.
		rows, err := conn.Query(ctx, `
select q.name::text, count(*)::integer, max(k.key & 32767)::integer
  from pg_locks as l
 cross join lateral (select (l.classid::bigint << 32) | l.objid::bigint as key) as k
  join sb_internal.queue as q on q.queue_id = (k.key >> 15) & 2147483647
 where l.locktype = 'advisory' and l.objsubid = 1 and l.granted and k.key >> 48 = 21314
   and l.database = (select d.oid from pg_database as d where d.datname = current_database())
 group by 1`)
		var (
			queue         string
			readers, slot int
		)
		if err == nil {
			_, err = pgx.ForEachRow(rows, []any{&queue, &readers, &slot}, func() error {
				f.most[queue] = max(f.most[queue], readers)
				if limit := limits[queue]; readers > limit || slot >= limit {
					f.Errorf("%s has %d readers, one of them in slot %d; its limit is %d", queue, readers, slot, limit)
				}
				return nil
			})
		}
		if err == nil {
			f.samples++
		} else {
			closeConn(conn)
			conn = nil
		}
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	if conn != nil {
		closeConn(conn)
	}
}

// note writes down when something has happened, as soon as the server answers.
func (f *fire) note(what string) {
	for {
		ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
		_, err := f.pool.Exec(ctx, "insert into public.event (what) values ($1)", what)
		cancel()
		if err == nil {
			return
		}
		if f.Context().Err() != nil {
			f.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// replace ends an activator, and starts another one as a supervisor would.
func (f *fire) replace(end func(*process)) {
	i := rand.IntN(len(f.activators))
	end(f.activators[i])
	f.note("activator")
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
	f.activators[i] = f.launch()
}

func (f *fire) killServer() { f.restart(syscall.SIGKILL) }

func (f *fire) quitServer() { f.restart(syscall.SIGQUIT) }

func (f *fire) restart(s syscall.Signal) {
	f.c.signal(s)
	f.c.stop()
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
	f.c.start()
	f.comeBack()
}

// killBackend makes the server end every session and recover.
func (f *fire) killBackend() {
	conn := f.c.connect()
	var pid int
	err := conn.QueryRow(f.Context(), `
select pid from pg_stat_activity where application_name like 'sbactivator %' order by random() limit 1`).Scan(&pid)
	if err != nil {
		f.Error(err) // there are three listeners at least, unless they are just starting
		return
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		f.Error(err)
		return
	}
	for err == nil {
		_, err = conn.Exec(f.Context(), "select pg_sleep(0.01)")
	}
	f.comeBack()
}

// comeBack waits until all activators listen again.
func (f *fire) comeBack() {
	f.pool.Reset() // what was connected may not know yet that it is dead
	f.note("server")
	f.within(time.Minute, "all listen again", "select ("+listeners+") >= $1", len(f.activators))
	took := time.Duration(value[float64](f.stage, `
select extract(epoch from max(a.backend_start) - (select max(at) from public.event))::float8
  from pg_stat_activity as a where a.datname = current_database() and a.application_name like 'sbactivator % listener'`) * float64(time.Second))
	f.listening = max(f.listening, took)
	if took > atMost(5*time.Second) {
		f.Errorf("an activator listens %v after the server is back", took)
	}
}

const listeners = `
select count(*) from pg_stat_activity where datname = current_database() and application_name like 'sbactivator % listener'`

// checkBooks compares what was sent with what was handled.
func (f *fire) checkBooks() {
	f.Helper()
	f.none("lost", "select handle, n from public.sent except select handle, n from public.ledger where queue in ('desk', 'client')")
	f.none("never sent", "select handle, n from public.ledger except select handle, n from public.sent")
	f.none("twice", "select queue, handle, n from public.ledger group by 1, 2, 3 having count(*) > 1")
	f.none("out of order", `select * from (
		select queue, handle, n, lag(n, 1, 0) over (partition by queue, handle order by id) as before from public.ledger) as o where n <> before + 1`)
	f.none("left in queues", "select * from sb.queue_messages")
	f.none("left in the transmission queue", "select * from sb.transmission_queue")
	f.none("stopped", "select name from sb.service_queues where not is_receive_enabled")
	// What the samples may have missed: as many calls as there were at the same time.
	for queue, limit := range limits {
		f.none("more than the reader limit of "+queue, fmt.Sprintf(`
with calls as (select worker, began, max(until) as until from public.ledger where queue = '%s' group by 1, 2)
select at, readers from (
  select at, sum(change) over (order by at, change) as readers
    from (select began as at, 1 as change from calls union all select until, -1 from calls) as changes) as o
 where readers > %d`, queue, limit))
	}
	f.slowest = value[float64](f.stage, `
select max(extract(epoch from l.at - greatest(s.at, (select max(e.at) from public.event as e where e.at <= l.at))))::float8
  from public.ledger as l join public.sent as s on s.handle = l.handle and s.n = l.n`)
	if limit := atMost(5 * time.Second).Seconds(); f.slowest > limit {
		f.Errorf("a message was handled after %.2f s, more than %.0f", f.slowest, limit)
		f.none("late", fmt.Sprintf(`
select * from (
  select l.queue, l.handle, l.n, s.at as sent, l.at as handled, (select max(e.at) from public.event as e where e.at <= l.at) as blow
    from public.ledger as l join public.sent as s on s.handle = l.handle and s.n = l.n) as o
 where handled - greatest(sent, blow) > %f * interval '1 s' order by handled`, limit))
	}
}

// An activator whose host is lost, and one that is frozen, give what they hold to the others; one that comes back does not
// do it again. The server waits 10 s at most for a host that does not answer. One that answers, with a process that does not,
// is given up by the handler's timeout and 5 s, and 10 s after a function has ended.
func TestLostHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose  func(p *process, network *proxy)
		limit time.Duration
	}{
		"lost":   {func(_ *process, network *proxy) { network.swallow("") }, 10 * time.Second},
		"frozen": {func(p *process, _ *proxy) { p.signal(syscall.SIGSTOP) }, 14 * time.Second},
	} {
		for _, queue := range []string{"desk", "bench"} {
			t.Run(name+" at "+queue, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.exec(openShop)
				s.exec(lingerAtDesk)
				dir := t.TempDir()
				settings := []string{
					clerkSettings(t, dir, 1, "bench"), "SBACTIVATOR_ACTIVATION_HANDLER_TIMEOUT=4s", "LINGER=" + filepath.Join(t.TempDir(), "once"), "LINGER_FOR=3s",
				}
				activators, networks := map[string]*process{}, map[string]*proxy{} // by the end of their names
				for range 2 {
					network := newProxy(t, s.url(s.login))
					p := start(t, network.url, settings...)
					id := fmt.Sprint("/", p.cmd.Process.Pid)
					activators[id], networks[id] = p, network
				}
				s.eventually("both listen", "select ("+listeners+") = 2")
				s.exec(`
with sent as (insert into public.sent (handle, n) values (sb.begin_dialog('client', $1), 1) returning handle, n)
select sb.send(handle, 'DEFAULT', handle || ' ' || n) from sent`, queue)
				const worker = `
from pg_stat_activity where datname = current_database() and application_name like 'sbactivator %'
 and xact_start < clock_timestamp() - interval '0.5 s'`
				s.eventually("one is at work", "select count(*) = 1 "+worker)
				id := value[string](s, "select substring(application_name from '/[0-9]+$') "+worker)
				c.lose(activators[id], networks[id])
				s.exec("insert into public.event (what) values ('lost')")
				s.none("too early", "select * from public.ledger")
				s.within(time.Minute, "handled elsewhere", "select exists (select from public.ledger where queue in ('desk', 'client'))")
				took := value[float64](s, "select extract(epoch from max(l.at) - (select at from public.event))::float8 from public.ledger as l")
				t.Logf("handled elsewhere after %.1f s", took)
				if took > atMost(c.limit).Seconds() {
					t.Errorf("handled elsewhere after %.1f s, more than %v", took, atMost(c.limit))
				}
				activators[id].signal(syscall.SIGCONT)
				s.eventually("both listen again", "select ("+listeners+") = 2")
				for _, p := range activators {
					p.stop()
				}
				(&fire{stage: s}).checkBooks()
				s.noneLeft(dir)
			})
		}
	}
}

// lingerAtDesk makes the function's first call take 3 s.
const lingerAtDesk = `
create sequence app.calls;
create or replace function app.desk() returns void language plpgsql as $$
declare
  began timestamptz := clock_timestamp();
  m record;
begin
  for m in select sb.body_text(r.message_body) as body from sb.receive('desk') as r loop
    perform pg_sleep(case nextval('app.calls') when 1 then 3 else 0 end);
    insert into public.ledger (queue, handle, n, worker, began, until)
    values ('desk', split_part(m.body, ' ', 1)::uuid, split_part(m.body, ' ', 2)::integer, pg_backend_pid(), began, clock_timestamp());
  end loop;
end $$`
