package sqltest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// flatSetUp installs the tools of the flatness tests. All time is taken inside the server, call by call: most
// calls are far shorter than a scheduler's time slice, so that the faster ones do not know how busy the machine is,
// and neither the network nor the race detector is measured. Autovacuum is off, because a test that is about dead rows or stale
// statistics must not depend on when it comes by.
const flatSetUp = `
create schema flat;
alter table sb_internal.message set (autovacuum_enabled = off);
alter table sb_internal.endpoint set (autovacuum_enabled = off);
alter table sb_internal.due set (autovacuum_enabled = off);
select sb.create_queue('Replies');
select sb.create_service('Client', 'Replies');
select sb.create_queue(q), sb.create_service(q || 'Service', q, '{DEFAULT}') from unnest(array['Work', 'Other']) as q;

create function flat.body() returns bytea language sql immutable
begin atomic select pg_catalog.decode(repeat('61', 200), 'hex'); end;

-- Begins dialogs with the service of a queue and returns the initiators' handles. The message that makes the
-- target's side stays in the queue. in_one_group moves the targets' sides together.
create function flat.dialogs(queue text, quantity integer, in_one_group boolean default false)
  returns uuid[] language plpgsql as $$
declare
  handles uuid[] := '{}';
  handle uuid;
begin
  for i in 1..quantity loop
    handle := sb.begin_dialog('Client', queue || 'Service');
    perform sb.send(handle, 'DEFAULT', flat.body());
    handles := handles || handle;
  end loop;
  if in_one_group then
    perform sb.move_conversation(p.conversation_handle, flat.group_of(handles[1]))
       from unnest(handles[2:]) as h (handle)
       join sb_internal.endpoint as p on p.peer_handle = h.handle;
  end if;
  return handles;
end $$;

-- The target's group of a dialog, by the initiator's handle.
create function flat.group_of(handle uuid) returns uuid language sql stable
begin atomic select p.conversation_group_id from sb_internal.endpoint as p where p.peer_handle = handle; end;

-- Sends per_dialog messages on each dialog, in turns of at most 100.
create procedure flat.fill(handles uuid[], per_dialog integer) language plpgsql as $$
declare
  turn constant integer := least(per_dialog, 100);
  handle uuid;
begin
  for i in 1..per_dialog / turn loop
    foreach handle in array handles loop
      perform sb.send_batch(handle, 'DEFAULT', array_fill(flat.body(), array[turn]));
    end loop;
    commit;
  end loop;
end $$;

-- Sets the non-transactional cells of a queue: where searches begin, and when the next full one is due (epoch, ms).
create function flat.set_cells(queue text, hint bigint, search bigint default 0) returns void language plpgsql as $$
declare
  id constant integer := (select q.queue_id from sb.service_queues as q where q.name = queue);
begin
  perform setval(format('sb_internal.queue_%s_hint_5', id)::regclass, hint),
          setval(format('sb_internal.queue_%s_search', id)::regclass, search);
end $$;

-- Has a long full search put the next one off for longer than a receive waits with it?
create function flat.is_put_off(queue text) returns boolean language plpgsql as $$
declare
  id constant integer := (select q.queue_id from sb.service_queues as q where q.name = queue);
begin
  return coalesce(pg_sequence_last_value(format('sb_internal.queue_%s_search', id)::regclass), 0)
    > (extract(epoch from clock_timestamp()) + 0.1) * 1000;
end $$;

create function flat.since(started timestamptz) returns float8 language plpgsql as $$
begin
  return extract(epoch from clock_timestamp() - started) * 1e6;
end $$;

-- The loops below return how many microseconds each call took with its commit.

create procedure flat.sends(inout micros float8[], quantity integer, handles uuid[]) language plpgsql as $$
declare
  started timestamptz;
begin
  for i in 1..quantity loop
    started := clock_timestamp();
    perform sb.send(handles[1 + i % cardinality(handles)], 'DEFAULT', flat.body());
    commit;
    micros[i] := flat.since(started);
  end loop;
end $$;

create procedure flat.receives(inout micros float8[], quantity integer, queue text, at_most integer)
  language plpgsql as $$
declare
  started timestamptz;
begin
  for i in 1..quantity loop
    started := clock_timestamp();
    perform r.queuing_order from sb.receive(queue, at_most) as r;
    if not found then
      raise 'call % received nothing', i;
    end if;
    commit;
    micros[i] := flat.since(started);
  end loop;
end $$;

-- Polls for the one message that can be had, and puts it back by the next send. from_front makes each poll a full
-- search that starts at the very front.
create procedure flat.polls(inout micros float8[], quantity integer, queue text, at_most integer, handle uuid,
  from_front boolean default false) language plpgsql as $$
declare
  started timestamptz;
  expected constant uuid := flat.group_of(handle);
  seen uuid;
begin
  for i in 1..quantity loop
    if from_front then
      perform flat.set_cells(queue, 0);
      commit;
    end if;
    started := clock_timestamp();
    seen := null;
    select r.conversation_group_id into seen from sb.receive(queue, at_most) as r;
    commit;
    micros[i] := flat.since(started);
    if seen is distinct from expected then
      raise 'poll % received from %, not from %', i, seen, expected;
    end if;
    perform sb.send(handle, 'DEFAULT', flat.body());
    commit;
  end loop;
end $$;

-- Runs a statement again and again, each time in a transaction of its own.
create procedure flat.times(inout micros float8[], quantity integer, statement text) language plpgsql as $$
declare
  started timestamptz;
begin
  for i in 1..quantity loop
    started := clock_timestamp();
    execute statement;
    commit;
    micros[i] := flat.since(started);
  end loop;
end $$;

-- Runs a statement with each handle in turn as its parameter.
create procedure flat.each(inout micros float8[], handles uuid[], statement text) language plpgsql as $$
declare
  started timestamptz;
begin
  for i in 1..cardinality(handles) loop
    started := clock_timestamp();
    execute statement using handles[i];
    commit;
    micros[i] := flat.since(started);
  end loop;
end $$;

-- A reader of a queue, for so many seconds: puts every message back by a send, and sets the timer that has fired
-- again to 1 ms. oldest and latest: how old in seconds a message, and how late a timer, came at worst; what is still
-- due in the end has come by then.
create procedure flat.timer_reader(inout timers integer, inout messages integer, inout oldest float8,
  inout latest float8, seconds float8, queue text, handles uuid[]) language plpgsql as $$
declare
  began constant timestamptz := clock_timestamp();
  m record;
begin
  while clock_timestamp() < began + seconds * interval '1 s' loop
    select r.* into m from sb.receive(queue, 1) as r;
    if m.message_type_id = 5 then
      timers := timers + 1;
      latest := greatest(latest, extract(epoch from clock_timestamp() - m.message_enqueue_time));
      perform sb.begin_conversation_timer(m.conversation_handle, interval '1 ms');
    elsif m.queuing_order is not null then
      messages := messages + 1;
      oldest := greatest(oldest, extract(epoch from clock_timestamp() - m.message_enqueue_time));
      perform sb.send(handles[1 + floor(random() * cardinality(handles))::integer], 'DEFAULT', flat.body());
    end if;
    commit;
  end loop;
  latest := greatest(latest, (select extract(epoch from clock_timestamp() - min(d.due_at)) from sb_internal.due as d));
end $$;

-- Receives one and sends one, for so many seconds: the backlog stays as it is. at: seconds since the start.
create procedure flat.turnover(inout at float8[], inout micros float8[], seconds float8, queue text, handles uuid[])
  language plpgsql as $$
declare
  began constant timestamptz := clock_timestamp();
  started timestamptz;
  n integer := 0;
begin
  loop
    started := clock_timestamp();
    exit when started > began + seconds * interval '1 s';
    perform r.queuing_order from sb.receive(queue, 1) as r;
    if found then
      n := n + 1;
      commit;
      micros[n] := flat.since(started);
      at[n] := extract(epoch from started - began);
    end if;
    perform sb.send(handles[1 + floor(random() * cardinality(handles))::integer], 'DEFAULT', flat.body());
    commit;
  end loop;
end $$;`

// flat is a database with the tools of flatSetUp, and a session of the owner for what is not measured.
type flat struct {
	*pgtest.Session
	db *pgtest.DB
	t  *testing.T
}

func newFlat(t *testing.T) *flat {
	t.Helper()
	db := pgtest.New(t)
	f := &flat{Session: db.Session(t, "owner"), db: db, t: t}
	f.Exec(flatSetUp)
	return f
}

// another returns the tools in a new session, whose plans are all still to be made.
func (f *flat) another(name string) *flat {
	f.t.Helper()
	return &flat{Session: f.db.Session(f.t, name), db: f.db, t: f.t}
}

// holdSnapshot keeps a snapshot from now on, as a report or a dump does: no dead row can be removed any more.
func (f *flat) holdSnapshot() *pgtest.Session {
	f.t.Helper()
	report := f.db.Session(f.t, "report")
	report.Exec("begin isolation level repeatable read")
	report.Query("select count(*) from sb_internal.endpoint")
	return report
}

// dialogs begins dialogs with the service of the queue, each of which leaves one message there.
func (f *flat) dialogs(queue string, quantity int) []string {
	f.t.Helper()
	return f.Query("select unnest(flat.dialogs($1, $2))", queue, quantity)
}

// dialogsInOneGroup does the same, with all targets in one conversation group.
func (f *flat) dialogsInOneGroup(queue string, quantity int) []string {
	f.t.Helper()
	return f.Query("select unnest(flat.dialogs($1, $2, true))", queue, quantity)
}

func (f *flat) fill(handles []string, perDialog int) {
	f.t.Helper()
	f.Exec("call flat.fill($1::text[]::uuid[], $2)", handles, perDialog)
}

// targets are the target's handles of the dialogs.
func (f *flat) targets(handles []string) []string {
	f.t.Helper()
	return f.Query(`
select e.conversation_handle
  from unnest($1::text[]) with ordinality as h (handle, n)
  join sb_internal.endpoint as e on e.peer_handle = h.handle::uuid
 order by h.n`, handles)
}

// drain receives all that the queue holds.
func (f *flat) drain(queue string) {
	f.t.Helper()
	for f.Value("select count(*) from sb.receive($1)", queue) != "0" {
	}
}

// lockGroups holds the target's groups of the dialogs in a transaction of its own, as a reader at work does.
func (f *flat) lockGroups(handles ...string) *pgtest.Session {
	f.t.Helper()
	reader := f.db.Session(f.t, "reader at work")
	reader.Begin()
	reader.Exec(`
select
  from sb.conversation_group as g
 where g.conversation_group_id in (select flat.group_of(h::uuid) from unnest($1::text[]) as h)
   for no key update`, handles)
	return reader
}

func (f *flat) sends(quantity int, handles ...string) micros {
	f.t.Helper()
	return f.call("flat.sends('{}', $1, $2::text[]::uuid[])", quantity, handles)
}

// receives receives atMost messages at a time; 0 is no limit.
func (f *flat) receives(quantity int, queue string, atMost int) micros {
	f.t.Helper()
	return f.call("flat.receives('{}', $1, $2, nullif($3, 0))", quantity, queue, atMost)
}

// polls receives the one message of the dialog that the queue can give, and sends it again.
func (f *flat) polls(quantity int, queue string, atMost int, handle string, fromFront bool) micros {
	f.t.Helper()
	return f.call("flat.polls('{}', $1, $2, nullif($3, 0), $4::text::uuid, $5)", quantity, queue, atMost, handle, fromFront)
}

func (f *flat) times(quantity int, statement string, args ...any) micros {
	f.t.Helper()
	return f.call("flat.times('{}', $1, $2)", quantity, fmt.Sprintf(statement, args...))
}

// each runs the statement once with each handle as $1.
func (f *flat) each(handles []string, statement string, args ...any) micros {
	f.t.Helper()
	return f.call("flat.each('{}', $1::text[]::uuid[], $2)", handles, fmt.Sprintf(statement, args...))
}

func (f *flat) call(procedure string, args ...any) micros {
	f.t.Helper()
	var m micros
	if err := f.Conn.QueryRow(f.t.Context(), "call "+procedure, args...).Scan(&m); err != nil {
		f.t.Fatalf("%s: %v", procedure, err)
	}
	return m
}

// turnover has several readers receive and send for so many seconds, and returns what their calls took, second by
// second.
func (f *flat) turnover(seconds, readers int, queue string, handles []string) []micros {
	f.t.Helper()
	type calls struct{ at, took micros }
	results := make([]calls, readers)
	var running []<-chan error
	for i := range readers {
		running = append(running, f.another(fmt.Sprint("reader ", i)).Go(func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, "call flat.turnover('{}', '{}', $1, $2, $3::text[]::uuid[])", seconds, queue, handles).
				Scan(&results[i].at, &results[i].took)
		}))
	}
	bySecond := make([]micros, seconds)
	for i, result := range running {
		if err := <-result; err != nil {
			f.t.Fatal(err)
		}
		for n, at := range results[i].at {
			second := min(int(at), seconds-1)
			bySecond[second] = append(bySecond[second], results[i].took[n])
		}
	}
	return bySecond
}

// micros are the times of single calls in microseconds.
type micros []float64

func (m micros) quantile(q float64) float64 {
	if len(m) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(m))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// undisturbed is what a call takes when nothing else has the processor: a low quantile, since the traps that the tests
// look for make every call slower, and a busy machine only some.
func (m micros) undisturbed() float64 { return m.quantile(0.2) }

func (m micros) String() string {
	return fmt.Sprintf("p20 %.0f µs, p50 %.0f µs, p90 %.0f µs (%d calls)", m.undisturbed(), m.quantile(0.5), m.quantile(0.9), len(m))
}

// first and last are a tenth of the calls.
func (m micros) first() micros { return m[:len(m)/10] }
func (m micros) last() micros  { return m[len(m)-len(m)/10:] }

// wantFlat fails when a call takes more than limit times as long as it did, or as what it is measured against.
func wantFlat(t *testing.T, what string, was, is micros, limit float64) {
	t.Helper()
	ratio := is.undisturbed() / was.undisturbed()
	t.Logf("%s: was %v, is %v: %.2f×", what, was, is, ratio)
	if ratio > limit {
		t.Errorf("%s: %.2f times as long, may be %.1f", what, ratio, limit)
	}
}
