package sqltest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// failures are the ways in which a transaction that has received something may come to nothing.
var failures = map[string]func(t *testing.T, db *pgtest.DB, s *pgtest.Session, receive string){
	"rollback": func(_ *testing.T, _ *pgtest.DB, s *pgtest.Session, receive string) {
		s.Begin()
		s.Exec(receive)
		s.Rollback()
	},
	"error": func(_ *testing.T, _ *pgtest.DB, s *pgtest.Session, receive string) {
		s.Begin()
		s.Exec(receive)
		s.ExecError("22012", "select 1/0")
		s.Exec("commit") // which rolls back
	},
	"error in the same statement": func(_ *testing.T, _ *pgtest.DB, s *pgtest.Session, receive string) {
		s.ExecError("22012", strings.Replace(receive, "*", "1/(queuing_order - queuing_order)", 1))
	},
	"terminated": func(t *testing.T, db *pgtest.DB, s *pgtest.Session, receive string) {
		killed(t, db, s, func(conn *pgx.Conn) {
			if _, err := conn.Exec(t.Context(), "begin; "+receive); err != nil {
				t.Fatal(err)
			}
		})
	},
	"connection lost": func(t *testing.T, db *pgtest.DB, s *pgtest.Session, receive string) {
		lose(t, db, s, func(conn *pgx.Conn) {
			if _, err := conn.Exec(t.Context(), "begin; "+receive); err != nil {
				t.Fatal(err)
			}
		})
	},
	"deferred constraint at commit": func(_ *testing.T, _ *pgtest.DB, s *pgtest.Session, receive string) {
		s.Exec("create table if not exists public.once (x integer unique deferrable initially deferred)")
		s.Begin()
		s.Exec(receive)
		s.Exec("insert into public.once values (1), (1)")
		s.ExecError("23505", "commit")
	},
}

func isOn(s *pgtest.Session, queue string) string {
	return s.Value("select is_receive_enabled from sb.service_queues where name = $1", queue)
}

const receiveRight = "select * from sb.receive('RightQueue')"

// Five in a row switch the queue off, four do not; errors, kills and lost connections count alike.
// Rules
func TestFiveFailuresStopTheQueue(t *testing.T) {
	t.Parallel()
	for name, fail := range failures {
		for _, receive := range []string{
			receiveRight,
			"select * from sb.receive('RightQueue', 1)",
			"select * from sb.receive('RightQueue', for_group => (select conversation_group_id from sb.conversation_endpoints where not is_initiator))",
		} {
			t.Run(name+"/"+receive, func(t *testing.T) {
				t.Parallel()
				db, a, b := newTalk(t)
				left, right := startTalk(a, "zero", "one")
				for i := range 4 {
					fail(t, db, b, receive)
					wantValue(t, fmt.Sprint("after failure ", i+1), isOn(a, "RightQueue"), "t")
				}
				fail(t, db, b, receive)

				// OFF from this moment on, for views, senders and receivers, before anybody has written it down.
				wantValue(t, "after the fifth", isOn(a, "RightQueue"), "f")
				say(a, left, "two")
				wantRows(t, "sends wait", waitingIn(a, left), "two")
				wantValue(t, "why", a.Value("select sb.get_transmission_status($1::uuid)", left), `The destination queue "RightQueue" is disabled.`)
				b.ExecError("S9617", receiveRight)
				b.ExecError("S9617", "select sb.get_conversation_group('RightQueue')")

				a.Exec(startRight)
				wantValue(t, "switched on", isOn(a, "RightQueue"), "t")
				wantRows(t, "nothing is lost", b.Query("select message_sequence_number, sb.body_text(message_body), conversation_handle = $1::uuid from sb.receive('RightQueue')", right),
					"0|zero|t", "1|one|t", "2|two|t")
				wantRows(t, "still waiting", waitingIn(a, left))
			})
		}
	}
}

// What does not count, and what sets the count back.
// Rules
func TestWhatDoesNotCount(t *testing.T) {
	t.Parallel()
	fail := func(s *pgtest.Session) {
		s.Begin()
		s.Exec(receiveRight)
		s.Rollback()
	}
	for name, between := range map[string]func(db *pgtest.DB, a, b *pgtest.Session){
		"a commit": func(_ *pgtest.DB, _, b *pgtest.Session) {
			b.Exec("select * from sb.receive('RightQueue', 1)")
		},
		"a commit in a transaction that rolled back to a savepoint": func(_ *pgtest.DB, _, b *pgtest.Session) {
			b.Begin()
			b.Exec("savepoint s")
			b.Exec(receiveRight)
			b.Exec("rollback to s")
			b.Commit()
		},
		"alter_queue": func(_ *pgtest.DB, a, _ *pgtest.Session) {
			a.Exec(startRight)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, a, b := newTalk(t)
			startTalk(a, "zero", "one", "two")
			for round := range 3 {
				for range 4 {
					fail(b)
				}
				between(db, a, b)
				wantValue(t, fmt.Sprint("round ", round), isOn(a, "RightQueue"), "t")
				if name == "a commit" {
					say(a, a.Value("select conversation_handle from sb.conversation_endpoints where is_initiator"), "more")
				}
			}
			for range 5 {
				fail(b)
			}
			wantValue(t, "five after all", isOn(a, "RightQueue"), "f")
		})
	}
	for name, work := range map[string]string{
		"an empty receive":                           "select * from sb.receive('LeftQueue')",
		"get_conversation_group":                     "select sb.get_conversation_group('RightQueue')",
		"a receive of another queue":                 "select * from sb.receive('LeftQueue')",
		"peeking":                                    "select * from sb.queue_messages",
		"a send":                                     "select sb.send((select conversation_handle from sb.conversation_endpoints where is_initiator), 'Note', 'x')",
		"a receive that finds its group empty":       "select * from sb.receive('LeftQueue', for_group => (select conversation_group_id from sb.conversation_endpoints where is_initiator))",
		"an empty receive with a short time to wait": "select * from sb.receive('LeftQueue', timeout => '1 ms')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, a, b := newTalk(t)
			startTalk(a, "zero")
			for range 10 {
				b.Begin()
				b.Exec(work)
				b.Rollback()
			}
			wantValue(t, "right", isOn(a, "RightQueue"), "t")
			wantValue(t, "left", isOn(a, "LeftQueue"), "t")
			// Nor do they stand between failures that count.
			for range 4 {
				fail(b)
				b.Begin()
				b.Exec(work)
				b.Rollback()
			}
			wantValue(t, "four", isOn(a, "RightQueue"), "t")
			fail(b)
			wantValue(t, "five", isOn(a, "RightQueue"), "f")
		})
	}
}

// However often one transaction receives, it counts once; and all queues it received from count.
// Rules: R-351
func TestOneTransactionCountsOnceForEachQueue(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	_, right := startTalk(a, "zero", "one", "two", "three", "four", "five", "six", "seven")
	say(a, right, "back")
	fail := func() {
		b.Begin()
		for range 8 {
			b.Exec("select * from sb.receive('RightQueue', 1)")
		}
		b.Exec("select * from sb.receive('LeftQueue')")
		b.Rollback()
	}
	for range 4 {
		fail()
	}
	wantValue(t, "right", isOn(a, "RightQueue"), "t")
	wantValue(t, "left", isOn(a, "LeftQueue"), "t")
	fail()
	wantValue(t, "right", isOn(a, "RightQueue"), "f")
	wantValue(t, "left", isOn(a, "LeftQueue"), "f")
}

// Failures of different sessions on different conversations add up.
// Rules: R-352
func TestFailuresOfManyReadersAddUp(t *testing.T) {
	t.Parallel()
	db, a, _ := newTalk(t)
	var readers []*pgtest.Session
	for i := range 5 {
		startTalk(a, fmt.Sprint(i))
		readers = append(readers, db.Session(t, fmt.Sprint("reader", i)))
	}
	for _, s := range readers {
		s.Begin()
		wantValue(t, "each has his own", fmt.Sprint(len(take(s, "'RightQueue'"))), "1")
	}
	// The newest, which is still running meanwhile, hides none of the others.
	for i, s := range readers {
		wantValue(t, fmt.Sprint(i, " failed"), isOn(a, "RightQueue"), "t")
		s.Rollback()
		wantValue(t, fmt.Sprint("rollbacks counted after ", i), a.Value("select consecutive_rollbacks from sb.queue_statistics where queue_name = 'RightQueue'"), fmt.Sprint(i+1))
	}
	wantValue(t, "all failed", isOn(a, "RightQueue"), "f")
}

// Handling off: never, and nothing is counted. Switched on later it begins from zero.
// Rules: R-357
func TestPoisonHandlingOff(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec("select sb.alter_queue('RightQueue', poison_message_handling => false)")
	startTalk(a, "zero")
	fail := func() {
		b.Begin()
		wantRows(t, "received", take(b, "'RightQueue'"), "zero")
		b.Rollback()
	}
	for range 12 {
		fail()
	}
	wantValue(t, "off", isOn(a, "RightQueue"), "t")
	a.Exec("select sb.alter_queue('RightQueue', poison_message_handling => true)")
	wantValue(t, "nothing was counted", isOn(a, "RightQueue"), "t")
	for range 4 {
		fail()
	}
	wantValue(t, "four", isOn(a, "RightQueue"), "t")
	// Off again, at the brink: five more do nothing.
	a.Exec("select sb.alter_queue('RightQueue', poison_message_handling => false)")
	for range 5 {
		fail()
	}
	wantValue(t, "off again", isOn(a, "RightQueue"), "t")
	// A queue that is off for poison comes back by switching the handling off, unless somebody has written it down.
	a.Exec("select sb.alter_queue('RightQueue', poison_message_handling => true)")
	fail()
	wantValue(t, "the four before count on", isOn(a, "RightQueue"), "f")
}

// The threshold is an option, of one and up.
// Rules: R-392
func TestPoisonThreshold(t *testing.T) {
	t.Parallel()
	for _, threshold := range []int{1, 2, 3, 7, 15, 16, 17, 20, 40} {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			t.Parallel()
			_, a, b := newTalk(t)
			a.Exec("select sb.set_option('poison_message_threshold', $1)", fmt.Sprint(threshold))
			left, _ := startTalk(a, "zero")
			for _, history := range []string{"fresh", "after a commit", "after alter_queue"} {
				if history == "after a commit" {
					say(a, left, "one")
					b.Exec("select * from sb.receive('RightQueue', 1)")
				}
				for i := range threshold {
					wantValue(t, fmt.Sprint(history, ", failures ", i), isOn(a, "RightQueue"), "t")
					b.Begin()
					if got := len(take(b, "'RightQueue', 1")); got != 1 {
						t.Fatalf("%s: failure %d received %d", history, i, got)
					}
					b.Rollback()
				}
				wantValue(t, history+", all failures", isOn(a, "RightQueue"), "f")
				wantRows(t, history+", off", take(b, "'RightQueue'"))
				b.ExecError("S9617", receiveRight)
				a.Exec(startRight)
			}
		})
	}
	// Lowered while there are failures already.
	_, a, b := newTalk(t)
	startTalk(a, "zero")
	for range 3 {
		b.Begin()
		b.Exec(receiveRight)
		b.Rollback()
	}
	a.Exec("select sb.set_option('poison_message_threshold', '3')")
	wantValue(t, "lowered", isOn(a, "RightQueue"), "f")
	b.Begin()
	wantRows(t, "lowered, off", take(b, "'RightQueue', 1"))
	b.Rollback()
	a.Exec("select sb.set_option('poison_message_threshold', '4')")
	wantValue(t, "raised", isOn(a, "RightQueue"), "t")
	for _, value := range []string{"0", "-1", "", "1.5", "x", "99999999999"} {
		a.ExecError("22023", "select sb.set_option('poison_message_threshold', $1)", value)
	}
}

// The loop of the outline rolls back when there is nothing to do, and a queue that is off has nothing: that must not
// switch it on again, nor keep it from being written down by somebody else.
// Rules: R-337
func TestOutlineLoopDoesNotUndoTheSwitch(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]string{
		"receive":                receiveRight,
		"get_conversation_group": "select sb.get_conversation_group('RightQueue')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, a, b := newTalk(t)
			left, _ := startTalk(a, "zero")
			for range 5 {
				b.Begin()
				b.Exec(receiveRight)
				b.Rollback()
			}
			for i := range 30 {
				b.Begin()
				_, err := b.Conn.Exec(t.Context(), look)
				if code := pgtest.SQLState(err); err != nil && code != "S9617" {
					t.Fatal(err)
				}
				b.Rollback()
				wantValue(t, fmt.Sprint("round ", i), isOn(a, "RightQueue"), "f")
			}
			wantRows(t, "nothing was handed out", a.Query("select sb.body_text(message_body) from sb.queue_messages"), "zero")
			say(a, left, "one")
			wantRows(t, "sends wait", waitingIn(a, left), "one")
			wantValue(t, "written down by the SEND", a.Value("select is_enabled from sb_internal.queue where name = 'RightQueue'"), "f")
			b.ExecError("S9617", look)
		})
	}
}

// Whoever commits first writes the switch down, once, and sends the event with it.
// Rules
func TestQueueDisabledEvent(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"receive":                receiveRight,
		"get_conversation_group": "select sb.get_conversation_group('RightQueue')",
		"send":                   "select sb.send((select conversation_handle from sb.conversation_endpoints where is_initiator and far_service = 'Right'), 'Note', 'x')",
		"deliver":                "select sb.deliver()",
		"maintain":               "select sb.maintain()",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, a, b := newTalk(t)
			a.Exec(`
select sb.create_queue('WatchQueue');
select sb.create_service('Watch', 'WatchQueue', '{https://schemas.microsoft.com/SQL/Notifications/PostEventNotification}');
select sb.create_event_notification('poisoned', 'RightQueue', 'BROKER_QUEUE_DISABLED', 'Watch')`)
			_, right := startTalk(a, "zero")
			for range 5 {
				b.Begin()
				b.Exec(receiveRight)
				b.Rollback()
			}
			// A transaction that fails takes the event back, too.
			b.Begin()
			b.Exec(first)
			b.Rollback()
			wantValue(t, "no event yet", a.Value("select count(*) from sb.queue_messages where queue_name = 'WatchQueue'"), "0")

			b.Exec("listen sb_events")
			b.Exec(first)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			for {
				n, err := b.Conn.WaitForNotification(ctx)
				if err != nil {
					t.Fatal("no operator event: ", err)
				}
				if n.Channel == "sb_events" && strings.Contains(n.Payload, "queue_disabled") && strings.Contains(n.Payload, "RightQueue") {
					break
				}
			}
			for range 3 {
				b.Conn.Exec(t.Context(), first)
				a.Exec("select sb.maintain(), sb.deliver()")
			}
			wantRows(t, "event, once", a.Query(`
select message_type_name, (xpath('/EVENT_INSTANCE/EventType/text()', sb.body_xml(message_body)))[1],
       (xpath('/EVENT_INSTANCE/ObjectName/text()', sb.body_xml(message_body)))[1]
  from sb.receive('WatchQueue')`),
				"https://schemas.microsoft.com/SQL/Notifications/EventNotification|BROKER_QUEUE_DISABLED|RightQueue")
			b.ExecError("S9617", receiveRight)

			// The way out: on again, end the bad conversation with an error.
			a.Exec(startRight)
			b.Exec("select sb.end_conversation($1::uuid, 1, 'poison')", right)
			wantRows(t, "its messages are gone", take(b, "'RightQueue'"))
			wantRows(t, "its sender knows", take(a, "'LeftQueue', 1"), "Error 1")
		})
	}
}

// Nobody who is switching the queue off keeps others waiting.
// Rules: R-356
func TestSwitchingOffKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, _ := startTalk(a, "zero")
	other, _ := startTalk(a)
	for range 5 {
		b.Begin()
		b.Exec(receiveRight)
		b.Rollback()
	}
	b.Begin()
	wantRows(t, "nothing", take(b, "'RightQueue'"))
	mustNotWait(t, a, "select sb.send($1::uuid, 'Note', 'x')", left)
	mustNotWait(t, a, "select * from sb.receive('RightQueue')")
	mustNotWait(t, a, "select sb.get_conversation_group('RightQueue')")
	mustNotWait(t, a, "select sb.end_conversation($1::uuid)", left)
	mustNotWait(t, a, "select sb.send($1::uuid, 'Note', 'first')", other)
	mustNotWait(t, a, "select sb.deliver()")
	mustNotWait(t, a, "select sb.maintain()")
	b.Commit()
	wantValue(t, "off", a.Value("select is_enabled from sb_internal.queue where name = 'RightQueue'"), "f")
}

// A receive that waits is told as well.
func TestWaitingReceiveAndPoison(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	startTalk(a, "zero")
	waiter := db.Session(t, "waiter")
	for range 4 {
		b.Begin()
		b.Exec(receiveRight)
		b.Rollback()
	}
	b.Begin()
	b.Exec(receiveRight)
	var got int
	result := waiter.Go(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "select count(*) from sb.receive('RightQueue', timeout => '60 s')").Scan(&got)
	})
	time.Sleep(20 * time.Millisecond)
	b.Rollback()
	wantCode(t, "the waiting receive", wait(t, result), "")
	if got == 0 {
		b.ExecError("S9617", receiveRight)
	} else { // it was just looking when the message came back: a receive that commits
		wantValue(t, "received by the waiter", isOn(a, "RightQueue"), "t")
	}
}

// Why a queue is off is kept when the count of rollbacks is lost, as in a crash, until it is switched on again; S9617 says it.
func TestPoisonReasonLasts(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := db.Session(t, "owner")
	s.Exec("select sb.create_queue('Q'), sb.create_service('client', 'Q'), sb.create_queue('RightQueue'), sb.create_service('server', 'RightQueue', '{DEFAULT}')")
	s.Exec("select sb.send(sb.begin_dialog('client', 'server'), 'DEFAULT', 'x')")
	reason := func(want string) {
		t.Helper()
		if got := s.Value("select is_receive_enabled || ' ' || is_poison_disabled from sb.service_queues where name = 'RightQueue'"); got != want {
			t.Errorf("on and poison: %s, want %s", got, want)
		}
	}
	stoppedBy := func(want string) {
		t.Helper()
		for _, verb := range []string{receiveRight, "select sb.get_conversation_group('RightQueue')"} {
			if err := s.ExecError("S9617", verb); !strings.Contains(err.Detail, "stopped_by="+want+" ") || !strings.Contains(err.Hint, "look first at the log") {
				t.Errorf("%s: %s, %s", verb, err.Detail, err.Hint)
			}
		}
	}
	reason("true false")
	for range 5 {
		failures["rollback"](t, db, s, receiveRight)
	}
	reason("false true") // not written down yet
	s.ExecError("S9617", "select sb.alter_service('server', queue_name => 'Q')")
	s.Exec("select sb.maintain()")
	s.Exec("select sb_internal._poison_reset(q.queue_id) from sb.service_queues as q")
	reason("false true")
	stoppedBy("poison_message_handling")
	s.Exec("select sb.alter_queue('RightQueue', enabled => false)") // off already
	stoppedBy("poison_message_handling")
	s.Exec("select sb.alter_queue('RightQueue', enabled => true)")
	reason("true false")
	s.Exec("select sb.alter_queue('RightQueue', enabled => false)")
	reason("false false")
	stoppedBy("alter_queue")
}
