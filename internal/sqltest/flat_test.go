package sqltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// What a call costs must not depend on how much lies in the queue, on how many dead rows an old snapshot keeps, or on
// what the queue looked like when the session made its plans. Each test builds the situation in which a simpler
// implementation was measured to collapse, and allows a fraction of that. Those called TestFlat compare times, and are not
// parallel: so they run before all parallel tests, with the machine to themselves.

// A dialog that is used again and again, while somebody holds an old snapshot: the counter of the sending side has
// as many dead versions as messages were sent.
func TestFlatSendOnReusedDialogUnderSnapshot(t *testing.T) {
	f := newFlat(t)
	handle := f.dialogs("Work", 1)[0]
	f.holdSnapshot()
	took := f.sends(20000, handle)
	wantFlat(t, "send", took.first(), took.last(), 2)
}

// A process that lives long has begun and ended many dialogs in its group.
func TestFlatBeginInGroupUnderSnapshot(t *testing.T) {
	f := newFlat(t)
	handle := f.dialogs("Work", 1)[0]
	f.holdSnapshot()
	statement := fmt.Sprintf("select sb.end_conversation(sb.begin_dialog('Client', 'WorkService', related_conversation => '%s'))", handle)
	before := f.times(200, "%s", statement)
	f.times(3000, "%s", statement)
	wantFlat(t, "begin and end", before, f.times(200, "%s", statement), 3)
}

// Received messages stay as dead rows at the front of the index.
func TestFlatReceiveUnderSnapshot(t *testing.T) {
	for _, test := range []struct {
		name    string
		isStuck bool
	}{
		{"free", false},
		// A hint that could only move past the oldest message would stay for ever where a reader is stuck.
		{"behind a stuck group", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFlat(t)
			stuck := f.dialogs("Work", 1)
			f.fill(stuck, 1000)
			free := f.dialogs("Other", 50)
			f.fill(free, 100)
			before := f.turnover(2, 2, "Other", free)[1]
			handles := f.dialogs("Work", 50)
			f.fill(handles, 100)
			if test.isStuck {
				f.lockGroups(stuck...)
			} else {
				f.Exec("select from sb.receive('Work', for_group => flat.group_of($1::text::uuid))", stuck[0])
			}
			f.holdSnapshot()
			seconds := f.turnover(20, 2, "Work", handles)
			wantFlat(t, "receive", before, slices.Concat(seconds[17:]...), 3)
		})
	}
}

// One message that can be had, behind more than 100,000 of groups that are locked.
func TestFlatReceiveBehindLockedGroups(t *testing.T) {
	for _, test := range []struct {
		name       string
		dialogs    int
		perDialog  int
		isOneGroup bool
		limit      float64 // one probe each for 1000 groups takes its time; a walk over their messages takes 20 or more
	}{
		{"one dialog", 1, 100000, false, 0.5},
		{"one group of 1000 dialogs", 1000, 100, true, 0.5},
		{"1000 groups", 1000, 100, false, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFlat(t)
			locked := f.dialogs
			if test.isOneGroup {
				locked = f.dialogsInOneGroup
			}
			handles := locked("Work", test.dialogs)
			f.fill(handles, test.perDialog)
			f.lockGroups(handles...)
			free := f.dialogs("Work", 1)[0]

			// 10 ms or so of the broker's own work, as the yardstick: a poll this long is interrupted on a busy
			// machine, and so is the yardstick.
			hundred := f.times(20, "select count(*) from generate_series(1, 100) as n cross join lateral sb.receive('Other', n)")
			wantFlat(t, "first poll to 100 polls of an empty queue", hundred, f.another("newcomer").polls(1, "Work", 1, free, false), 15)
			wantFlat(t, "poll from the front to 100 polls of an empty queue", hundred, f.polls(50, "Work", 1, free, true), test.limit)
			wantFlat(t, "poll for many to 100 polls of an empty queue", hundred, f.polls(50, "Work", 0, free, true), test.limit)
			wantFlat(t, "poll to 100 polls of an empty queue", hundred, f.polls(50, "Work", 1, free, false), 0.5)
		})
	}
}

// A conversation in a group of thousands, in a session that made its plans when groups were small.
func TestFlatReceiveInLargeGroup(t *testing.T) {
	f := newFlat(t)
	handle := f.dialogs("Work", 1)[0]
	one, ten := f.polls(200, "Work", 1, handle, false), f.polls(200, "Work", 10, handle, false)
	f.Exec(`
select sb.begin_dialog('WorkService', 'Client', related_conversation_group => flat.group_of($1::text::uuid))
  from generate_series(1, 2000)`, handle)
	wantFlat(t, "receive of one", one, f.polls(200, "Work", 1, handle, false), 2)
	wantFlat(t, "receive of ten", ten, f.polls(200, "Work", 10, handle, false), 3)
}

// Messages consumed under a snapshot are dead rows at the front of their own conversation, too, and of its group.
func TestFlatFirstMessageOfReusedDialogUnderSnapshot(t *testing.T) {
	for _, test := range []struct {
		name   string
		atMost int
	}{{"one", 1}, {"ten", 10}, {"all", 0}} {
		t.Run(test.name, func(t *testing.T) {
			f := newFlat(t)
			handle := f.dialogs("Work", 1)[0]
			f.holdSnapshot()
			before := f.polls(200, "Work", test.atMost, handle, false)
			for range 4 {
				f.fill([]string{handle}, 5000)
				f.receives(50, "Work", 100)
			}
			f.drain("Work")
			f.sends(1, handle)
			wantFlat(t, "receive", before, f.polls(200, "Work", test.atMost, handle, false), 3)
		})
	}
}

// Plans are made once a session. Those of a session that met an empty queue, or of one that plans by statistics of an
// empty table, must do for a full one.
func TestFlatPlans(t *testing.T) {
	f := newFlat(t)
	for _, table := range f.Query("select c.oid::regclass from pg_class as c where c.relkind = 'r' and c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)") {
		f.Exec("analyze " + table)
	}
	old := f.another("old")
	verbs := func(f *flat) map[string]micros {
		f.t.Helper()
		handles := f.dialogs("Work", 60)
		targets := f.targets(handles)
		f.each(handles, "select sb.send($1, 'DEFAULT', 'x'::text)")
		return map[string]micros{
			"receive":                  f.receives(60, "Work", 1),
			"receive 10":               f.receives(50, "Work", 10),
			"get_conversation_group":   f.times(60, "select sb.get_conversation_group('Work')"),
			"receive for_conversation": f.each(targets[40:], "select count(*) from sb.receive('Work', 1, for_conversation => $1)"),
			"send":                     f.sends(60, handles...),
			"send of the target":       f.sends(60, targets...),
			"begin_dialog and send":    f.times(60, "select sb.send(sb.begin_dialog('Client', 'WorkService'), 'DEFAULT')"),
			"timer":                    f.each(targets, "select sb.begin_conversation_timer($1, interval '1 h')"),
			"move":                     f.each(targets, "select sb.move_conversation($1, '%s')", f.Value("select flat.group_of($1::text::uuid)", handles[0])),
			"end":                      f.each(handles[30:], "select sb.end_conversation($1)"),
			"end with cleanup":         f.each(targets[30:], "select sb.end_conversation($1, cleanup => true)"),
		}
	}
	old.times(20, "select count(*) from sb.receive('Work')")
	old.times(20, "select sb.get_conversation_group('Work')")
	empty := verbs(old)

	backlog := f.dialogs("Work", 100)
	f.fill(backlog, 2000)
	for _, session := range []*flat{old, f.another("new")} {
		for verb, took := range verbs(session) {
			wantFlat(t, session.Name+" session: "+verb, empty[verb], took, 10)
		}
	}
}

// What is taken from a group must not depend on how much the group has.
func TestFlatTakeFromLargeGroup(t *testing.T) {
	for _, test := range []struct {
		name      string
		dialogs   int
		perDialog int
	}{
		{"one dialog", 1, 200000},
		{"1000 dialogs", 1000, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFlat(t)
			f.fill(f.dialogs("Other", 1), 2000)
			f.fill(f.dialogsInOneGroup("Work", test.dialogs), test.perDialog)
			for _, atMost := range []int{1, 10} {
				small, large := f.receives(100, "Other", atMost), f.receives(100, "Work", atMost)
				wantFlat(t, fmt.Sprint("receive ", atMost), small, large, 10)
			}
		})
	}
}

// Whoever looks after the broker does so every second, at any backlog; and SEND does not look at it at all.
func TestFlatHousekeeping(t *testing.T) {
	f := newFlat(t)
	handles := f.dialogs("Work", 100)
	f.fill(handles, 100)
	housekeeping := func() map[string]micros {
		t.Helper()
		f.Exec("analyze sb_internal.message") // as autovacuum would
		return map[string]micros{
			"send":             f.sends(200, handles[0]),
			"queue_statistics": f.times(20, "select count(*) from sb.queue_statistics"),
			"deliver":          f.times(20, "select sb.deliver()"),
			"maintain":         f.times(20, "select sb.maintain()"),
			"probe_queue":      f.times(20, "select sb.probe_queue(%s)", f.Value("select queue_id from sb.service_queues where name = 'Work'")),
		}
	}
	few := housekeeping()
	f.fill(handles, 2900)
	for what, took := range housekeeping() {
		wantFlat(t, what, few[what], took, 10)
	}
	estimate := f.Value("select ready_messages between 150000 and 600000 from sb.queue_statistics where queue_name = 'Work'")
	if estimate != "t" {
		t.Error("queue_statistics is far from 300,000")
	}

	// 100,000 messages that wait for a queue that is off are not walked through either.
	f.Exec("select sb.alter_queue('Other', enabled => false)")
	waiting := f.Query("select sb.begin_dialog('Client', 'OtherService') from generate_series(1, 20)")
	f.fill(waiting, 25)
	sendFew := f.sends(200, waiting[0])
	few = housekeeping()
	f.fill(waiting, 5000)
	wantFlat(t, "send to the transmission queue", sendFew, f.sends(200, waiting[0]), 3)
	for what, took := range housekeeping() {
		if what != "queue_statistics" { // which counts up to 10,000
			wantFlat(t, what+" with messages waiting", few[what], took, 10)
		}
	}
}

// A dialog whose handler sets its timer to 1 ms again and again neither starves the messages of the others nor is
// starved by them, not even when the oldest message of all is out of reach.
func TestFairnessOfTimers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		isStuck bool
	}{
		{"busy queue", false},
		{"behind a stuck group", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFlat(t)
			if test.isStuck {
				f.lockGroups(f.dialogs("Work", 1)...)
			}
			timer := f.targets(f.dialogs("Work", 1))
			handles := f.dialogs("Work", 10)
			f.fill(handles, 20)
			f.each(timer, "select sb.begin_conversation_timer($1, interval '1 ms')")
			var timers, messages int
			var oldest, latest float64
			err := f.Conn.QueryRow(t.Context(), "call flat.timer_reader(0, 0, 0, 0, 6, 'Work', $1::text[]::uuid[])", handles).
				Scan(&timers, &messages, &oldest, &latest)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d timers, at most %.2f s late; %d messages, at most %.2f s old", timers, latest, messages, oldest)
			// A full search, each 100 ms or so, gives the timer what is due once it is older than the messages.
			if timers < 5 || latest > 3 {
				t.Error("the timer was starved")
			}
			if messages < 500 || oldest > 3 {
				t.Error("the messages were starved")
			}
		})
	}
}

// Timers and lifetimes that lie ahead cost nothing.
func TestFlatTimersAhead(t *testing.T) {
	f := newFlat(t)
	handle := f.dialogs("Work", 1)[0]
	before := f.polls(200, "Work", 10, handle, true)
	f.Exec(`
insert into sb_internal.due (conversation_handle, is_lifetime, conversation_group_id, queue_id, priority, due_at)
select gen_random_uuid(), true, gen_random_uuid(), q.queue_id, 5, now() + interval '1 h' + n * interval '1 s'
  from sb.service_queues as q
 cross join generate_series(1, 200000) as n
 where q.name = 'Work'`)
	wantFlat(t, "full search", before, f.polls(200, "Work", 10, handle, true), 10)
	wantFlat(t, "full search of a new session", before, f.another("new").polls(200, "Work", 10, handle, true), 10)
}

// What a rollback leaves behind the start hint comes soon, however busy the queue is.
func TestRolledBackMessageComesSoonInBusyQueue(t *testing.T) {
	t.Parallel()
	f := newFlat(t)
	old := f.targets(f.dialogs("Work", 1))[0]
	failing := f.another("failing")
	failing.Begin()
	if got := failing.Value("select conversation_handle from sb.receive('Work', 1)"); got != old {
		t.Fatalf("received from %s", got)
	}
	handles := f.dialogs("Work", 20)
	f.fill(handles, 100)
	done := make(chan []micros)
	busy := f.another("busy")
	go func() { done <- busy.turnover(5, 2, "Work", handles) }()
	pgtest.Eventually(t, 10*time.Second, func() bool { // the hint has left the message far behind
		return f.Value("select max(pg_sequence_last_value(c.oid)) > 500 from pg_class as c where c.relname ~ '^queue_[0-9]+_hint_5$'") == "t"
	})
	failing.Rollback()
	pgtest.Eventually(t, time.Second, func() bool {
		return f.Value("select count(*) from sb_internal.message as m where m.conversation_handle = $1::text::uuid", old) == "0"
	})
	<-done
}

// A receive that returns nothing says that there is nothing, also of what came back the moment before: except while a
// full search that was long puts the next one off.
func TestEmptyMeansEmpty(t *testing.T) {
	t.Parallel()
	f := newFlat(t)
	f.Exec("select sb.alter_queue('Work', poison_message_handling => false)")
	one, other := f.dialogs("Work", 1)[0], f.dialogs("Work", 1)[0]
	f.drain("Work")
	failing, rival, reader := f.another("failing"), f.another("rival"), f.another("reader")
	const tries = 500
	putOff, late := 0, 0
	for range tries {
		f.sends(1, one)
		failing.Begin()
		failing.Query("select from sb.receive('Work', nullif($1, 0))", rand.IntN(3))
		// A rival takes the hint further: to where his last receive began.
		n := 2 + rand.IntN(500)
		f.Exec("select sb.send_batch($1::text::uuid, 'DEFAULT', array_fill(flat.body(), array[$2::integer]))", other, n)
		rival.Query("select from sb.receive('Work', $1)", n-1)
		rival.Query("select from sb.receive('Work')")
		if rand.IntN(2) == 0 {
			reader.Query("select from sb.receive('Work', 1)")
		}
		failing.Rollback()
		// On a busy machine the rival's dead rows make searches long now and then.
		mayBeLate := reader.Value("select flat.is_put_off('Work')") == "t"
		if mayBeLate {
			putOff++
		}
		statement := "select count(*) from sb.receive('Work', nullif($1, 0))"
		atMost := rand.IntN(3)
		if reader.Value(statement, atMost) == "1" {
			continue
		}
		if !mayBeLate {
			late++
		}
		pgtest.Eventually(t, 11*time.Second, func() bool { return reader.Value(statement, atMost) == "1" })
	}
	t.Logf("the search was put off %d times of %d", putOff, tries)
	if late > 0 {
		t.Errorf("%d receives saw nothing though a message was ready", late)
	}
	if putOff > tries/5 {
		t.Error("the search was put off too often for the test to say anything")
	}
}

// The hint and the time of the next full search are not transactional, and a restore or a clock set back may leave
// anything in them. Nothing may be lost, doubled or overtaken by that.
func TestWrongHintDoesNoHarm(t *testing.T) {
	t.Parallel()
	f := newFlat(t)
	f.Exec("select sb.alter_queue('Work', poison_message_handling => false)")
	now := time.Now().UnixMilli()
	const huge = math.MaxInt64
	for _, hint := range []int64{0, 1, 100, 1000, huge} {
		for _, search := range []int64{0, now, now + 60, now + 86400000, huge} {
			t.Run(fmt.Sprintf("hint %d search %d", hint, search-now), func(t *testing.T) {
				handles := f.dialogs("Work", 5)
				f.fill(handles, 50)
				next := map[string]int{}
				quiet := time.Now()
				for received := 0; received < 5*51; {
					f.Exec("select flat.set_cells('Work', $1, $2)", hint, search)
					// Once wrong, and then as it goes on from there.
					for range 1 + rand.IntN(20) {
						rows := f.Query("select r.conversation_handle, r.message_sequence_number from sb.receive('Work', nullif($1, 0)) as r", rand.IntN(4))
						for _, row := range rows {
							handle, number, _ := strings.Cut(row, "|")
							if number != strconv.Itoa(next[handle]) {
								t.Fatalf("received %s, expected %d", number, next[handle])
							}
							next[handle]++
							quiet = time.Now()
						}
						received += len(rows)
					}
					if time.Since(quiet) > time.Second {
						t.Fatalf("nothing received for 1 s after %d messages", received)
					}
				}
			})
		}
	}
}

// The group of the message at the hint is locked; that is where two readers meet. The first receive of a session is
// the one that makes the plans.
func TestReceiveNextToLockedGroupAtTheHint(t *testing.T) {
	t.Parallel()
	f := newFlat(t)
	locked, free := f.dialogs("Work", 1), f.dialogs("Work", 1)
	f.lockGroups(locked...)
	f.Exec("select flat.set_cells('Work', 0, $1)", time.Now().Add(time.Minute).UnixMilli())
	want := f.targets(free)[0]
	newcomer := f.another("newcomer")
	wantRows(t, "received", newcomer.Query("select conversation_handle from sb.receive('Work', 1)"), want)
	wantRows(t, "received", newcomer.Query("select conversation_handle from sb.receive('Work', 1)"))
}

// While a receive waits, the conversation it meets first changes. What it knew of the one it could not have must not
// be applied to the one it gets.
func TestWaitingReceiveKeepsOrder(t *testing.T) {
	t.Parallel()
	f := newFlat(t)
	busy, late := f.dialogs("Work", 1), f.dialogs("Work", 1)
	f.drain("Work")
	f.fill(busy, 200)
	f.receives(199, "Work", 1)
	holder, waiter := f.another("holder"), f.another("waiter")
	holder.Begin()
	holder.Query("select from sb.receive('Work', 1)")
	var got []string
	received := waiter.Go(func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "select r.message_sequence_number from sb.receive('Work', 1, timeout => interval '10 s') as r")
		if err != nil {
			return err
		}
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		got = append(got, fmt.Sprint(numbers))
		return err
	})
	pgtest.Eventually(t, 10*time.Second, func() bool {
		return f.Value("select wait_event from pg_stat_activity where pid = $1", waiter.PID()) == "PgSleep"
	})
	holder.Exec("select sb.send_batch($1::text::uuid, 'DEFAULT', array_fill(flat.body(), array[500]))", late[0])
	holder.Commit()
	if err := wait(t, received); err != nil {
		t.Fatal(err)
	}
	wantRows(t, "sequence number", got, "[1]")
}

// SEND notifies only while somebody waits: a commit with a NOTIFY takes a lock of the whole cluster.
func TestSendNotifiesOnlyWaiters(t *testing.T) {
	t.Parallel()
	f := newFlat(t)
	handle := f.dialogs("Work", 1)[0]
	channel := "sb_queue_" + f.Value("select queue_id from sb.service_queues where name = 'Work'")
	listener, one, two := f.another("listener"), f.another("one"), f.another("two")
	listener.Exec("listen " + channel)
	listener.Exec("listen marker")
	// Notifications come in the order of the commits: what the sends notified comes before the marker.
	heard := func() (channels []string) {
		t.Helper()
		f.sends(2, handle)
		f.Exec("select sb.send_batch($1::text::uuid, 'DEFAULT', array_fill(flat.body(), array[2]))", handle)
		f.each(f.targets([]string{handle}), "select sb.begin_conversation_timer($1, interval '1 h')")
		f.Exec("notify marker")
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			n, err := listener.Conn.WaitForNotification(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if n.Channel == "marker" {
				return channels
			}
			if n.Payload != "" {
				t.Errorf("payload %q", n.Payload)
			}
			channels = append(channels, n.Channel)
		}
	}
	every := []string{channel, channel, channel, channel}
	wantRows(t, "nobody waits", heard())
	one.Exec("select sb.start_waiting('Work')")
	wantRows(t, "one waits", heard(), every...)
	two.Exec("select sb.start_waiting('Work')")
	wantRows(t, "two wait", heard(), every...)
	one.Exec("select sb.stop_waiting('Work')")
	wantRows(t, "one of two has stopped", heard(), every...)
	two.Exec("select sb.start_waiting('Other')")
	two.Exec("select sb.stop_waiting('Work')")
	wantRows(t, "only another queue is waited for", heard())
	one.Exec("select sb.start_waiting('Work')")
	wantRows(t, "one waits again", heard(), every...)
	if err := one.Conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 10*time.Second, func() bool {
		return f.Value("select count(*) from pg_stat_activity where pid = $1", one.PID()) == "0"
	})
	wantRows(t, "the waiter is gone", heard())
	// And the senders have kept nothing of the flag.
	wantRows(t, "advisory locks left", f.Query("select pid from pg_locks where locktype = 'advisory' and pid = $1", f.PID()))
}
