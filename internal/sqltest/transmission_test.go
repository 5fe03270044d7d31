package sqltest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

const (
	stopRight  = "select sb.alter_queue('RightQueue', enabled => false)"
	startRight = "select sb.alter_queue('RightQueue', enabled => true)"
)

// What keeps messages back in many ways, what brings them on, and what the sender reads meanwhile.
// Rules
func TestMessagesWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stop, start, status string }{
		"queue stopped": {
			stopRight, startRight, `The destination queue "RightQueue" is disabled.`,
		},
		"queue stopped, deliver": {
			stopRight, "update sb_internal.queue set is_enabled = true where name = 'RightQueue'; select sb.deliver('RightQueue')",
			`The destination queue "RightQueue" is disabled.`,
		},
		"broker disabled": {
			"select sb.disable_broker()", "select sb.enable_broker()", "The broker is disabled in this database.",
		},
		"no route": {
			"select sb.drop_route('AutoCreatedLocal')", "select sb.create_route('again', 'LOCAL')", `No route matches the destination service "Right".`,
		},
		"route to elsewhere": {
			"select sb.create_route('away', 'remote://elsewhere', 'Right')", "select sb.drop_route('away'); select sb.deliver()", "Waiting to be transmitted to remote://elsewhere.",
		},
		"route expired": {
			"select sb.alter_route('AutoCreatedLocal', lifetime => '1 microsecond')", "select sb.alter_route('AutoCreatedLocal', lifetime => '1 hour')",
			`No route matches the destination service "Right".`,
		},
		"service missing": {
			"select sb.drop_service('Right')", "select sb.create_service('Right', 'RightQueue', '{Talk}')", `The destination service "Right" does not exist.`,
		},
		"service and queue missing": {
			"select sb.drop_service('Right'), sb.drop_queue('RightQueue')",
			"select sb.create_queue('RightQueue'); select sb.create_service('Right', 'RightQueue', '{Talk}')", `The destination service "Right" does not exist.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, a, b := newTalk(t)
			a.Exec(c.stop)
			left, right := startTalk(a, "zero", "one")
			a.Exec("select sb.send_batch($1::uuid, 'Note', '{two,three}')", left)
			ended, _ := startTalk(a, "last words")
			a.Exec("select sb.end_conversation($1::uuid)", ended)
			failed, _ := startTalk(a, "dropped by the error")
			a.Exec("select sb.end_conversation($1::uuid, 5, 'x')", failed)
			quiet := beginTalk(a)
			a.Exec("select sb.end_conversation($1::uuid)", quiet)

			wantRows(t, "waiting", waitingIn(a, left), "zero", "one", "two", "three")
			wantRows(t, "waiting", waitingIn(a, ended), "last words", "EndDialog")
			wantValue(t, "status", a.Value("select sb.get_transmission_status($1::uuid)", left), c.status)
			wantRows(t, "status in the view, per conversation", a.Query("select distinct transmission_status from sb.transmission_queue"), c.status)
			wantRows(t, "view", a.Query(`
select from_service_name, to_service_name, service_contract_name, message_type_name, message_sequence_number,
       is_conversation_error, is_end_of_dialog, to_broker_instance, priority
  from sb.transmission_queue where conversation_handle = $1::uuid order by message_sequence_number`, ended),
				"Left|Right|Talk|Note|0|f|f|NULL|5", "Left|Right|Talk|https://schemas.microsoft.com/SQL/ServiceBroker/EndDialog|1|f|t|NULL|5")
			wantValue(t, "sender", stateOf(a, left), "CO")
			wantValue(t, "who has ended", stateOf(a, ended), "DO")
			wantValue(t, "who never had a peer", stateOf(a, failed)+stateOf(a, quiet), "")
			wantRows(t, "nothing comes back", take(a, "'LeftQueue'"))
			a.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", ended)
			a.ExecError("S8427", "select sb.end_conversation($1::uuid)", ended)
			a.Exec("select sb.deliver(), sb.maintain()")
			wantRows(t, "still waiting", waitingIn(a, left), "zero", "one", "two", "three")

			a.Exec(c.start)
			wantRows(t, "waiting", waitingIn(a, left))
			wantValue(t, "status", a.Value("select sb.get_transmission_status($1::uuid)", left), "")
			wantValue(t, "who has ended", stateOf(a, ended), "")
			say(a, left, "four")
			wantRows(t, "delivered", b.Query("select message_sequence_number, sb.body_text(message_body) from sb.receive('RightQueue', for_conversation => $1::uuid)", right),
				"0|zero", "1|one", "2|two", "3|three", "4|four")
			wantRows(t, "delivered", take(b, "'RightQueue'"), "last words", "EndDialog")
			wantRows(t, "delivered", take(b, "'RightQueue'"))
		})
	}
}

// A dialog that has both sides already: its messages wait in the same way, in either direction, and an END WITH ERROR
// drops what waits and overtakes it.
// Rules
func TestMessagesWaitInALiveDialog(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "zero")
	failing, failingRight := startTalk(a, "zero")
	a.Exec(stopRight)
	say(a, left, "one")
	say(a, failing, "one", "two")
	// On, but nobody has delivered yet: later sends queue up behind.
	a.Exec("update sb_internal.queue set is_enabled = true where name = 'RightQueue'")
	a.Begin()
	say(a, left, "two")
	a.Commit()
	wantRows(t, "the SEND took along what waited", waitingIn(a, left))
	a.Exec("select sb.end_conversation($1::uuid, 9, 'x')", failing)
	wantRows(t, "dropped", waitingIn(a, failing))
	wantRows(t, "in order", take(b, "'RightQueue', for_conversation => '"+right+"'"), "zero", "one", "two")
	wantRows(t, "error first, nothing that waited", take(b, "'RightQueue', for_conversation => '"+failingRight+"'"), "Error 9", "zero")

	// The other direction, with an error that has to wait as well.
	a.Exec("select sb.alter_queue('LeftQueue', enabled => false)")
	say(b, right, "never read")
	b.Exec("select sb.end_conversation($1::uuid, 9, 'x')", right)
	wantRows(t, "the error waits", waitingIn(b, right), "Error 9")
	wantRows(t, "view", b.Query("select is_conversation_error, is_end_of_dialog, message_sequence_number from sb.transmission_queue"), "t|f|-1")
	wantValue(t, "initiator", stateOf(a, left), "CO")
	say(a, left, "to one who has ended")
	a.Exec("select sb.alter_queue('LeftQueue', enabled => true)")
	wantValue(t, "initiator", stateOf(a, left), "ER")
	wantRows(t, "the error, and nothing else", take(a, "'LeftQueue'"), "Error 9")
}

// What had left when the error came is in order; what waited is dropped; nothing is sent after a peer's end.
// Rules
func TestEndWhileTheQueueIsOff(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "arrived")
	a.Exec(stopRight)
	say(a, left, "waiting")
	b.Exec("select sb.end_conversation($1::uuid)", right) // works although its own queue is off
	wantValue(t, "initiator", stateOf(a, left), "DI")
	a.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", left)
	wantRows(t, "kept until this side ends (R-250)", waitingIn(a, left), "waiting")
	if status := a.Value("select sb.get_transmission_status($1::uuid)", left); !strings.HasPrefix(status, "Held") {
		t.Errorf("status %q", status)
	}
	a.Exec(startRight)
	a.Exec("select sb.deliver()")
	wantRows(t, "held", waitingIn(a, left), "waiting")
	a.Exec("select sb.end_conversation($1::uuid)", left)
	wantRows(t, "left over", leftOver(a))
}

// Both queues off and one side ends: what the other sends is discarded in silence; it hears the end, and no error.
// Rules: R-220
func TestSendToOneWhoHasEnded(t *testing.T) {
	t.Parallel()
	for _, bothOff := range []bool{false, true} {
		_, a, b := newTalk(t)
		left, right := startTalk(a, "zero")
		a.Exec("select sb.alter_queue('LeftQueue', enabled => false)")
		b.Exec("select sb.end_conversation($1::uuid)", right)
		wantValue(t, "target", stateOf(b, right), "DO")
		if bothOff {
			a.Exec(stopRight)
		}
		say(a, left, "discarded")
		a.Exec(startRight)
		wantRows(t, "left", waitingIn(a, left))
		wantRows(t, "discarded", take(b, "'RightQueue'"))
		a.Exec("select sb.alter_queue('LeftQueue', enabled => true)")
		wantValue(t, "target", stateOf(b, right), "")
		wantValue(t, "initiator", stateOf(a, left), "DI")
		wantRows(t, "what the initiator hears", take(a, "'LeftQueue'"), "EndDialog")
		a.Exec("select sb.end_conversation($1::uuid)", left)
		wantRows(t, "left over", leftOver(a))
	}
}

// Both end while each other's queue is off, in every form: nobody waits for ever in DO.
func TestBothEndWhileBothQueuesAreOff(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for _, one := range []string{"", ", 1, 'x'", ", cleanup => true"} {
		for _, two := range []string{"", ", 2, 'y'", ", cleanup => true"} {
			left, right := startTalk(a, "zero")
			say(b, right, "back")
			a.Exec("select sb.alter_queue('LeftQueue', enabled => false), sb.alter_queue('RightQueue', enabled => false)")
			say(a, left, "waiting")
			say(b, right, "waiting")
			a.Exec("select sb.end_conversation($1::uuid"+one+")", left)
			b.Exec("select sb.end_conversation($1::uuid"+two+")", right)
			a.Exec(startRight)
			a.Exec("select sb.alter_queue('LeftQueue', enabled => true)")
			wantRows(t, one+two, append(take(a, "'LeftQueue'"), take(b, "'RightQueue'")...))
			a.Exec("select sb.maintain()")
			wantRows(t, "left over after"+one+two, leftOver(a))
		}
	}
}

// Refusals for good come as Error messages, once, and what waited behind stays until the application ends.
// Rules
func TestRefusals(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	stranger := db.CreateRole(t, "stranger")
	a.Exec(`
select sb.create_contract('Other', sent_by_any => '{Note}');
select sb.create_queue('StrangersQueue');
select sb.create_service('Strangers', 'StrangersQueue', '{Talk}');
select sb.create_queue('LateQueue', enabled => false)`)
	a.Exec("select sb.grant_receive('StrangersQueue', $1), sb.grant_references('Talk', $1)", stranger)
	instance := a.Value("select broker_instance from sb.broker")
	// The owner of the initiating service is who counts, so the service must be the stranger's.
	super := db.Superuser(t)
	if _, err := super.Exec(t.Context(), "grant "+stranger+" to "+db.Owner); err != nil {
		t.Fatal(err)
	}
	a.Exec("select sb.alter_authorization('service', 'Strangers', $1)", stranger)
	s := db.SessionAs(t, "stranger", stranger)
	for name, c := range map[string]struct {
		s     *pgtest.Session
		begin string
		queue string
		code  string
	}{
		"contract not accepted":           {a, "'Left', 'Right', 'Other'", "LeftQueue", "-8408"},
		"no right to send":                {s, "'Strangers', 'Right', 'Talk'", "StrangersQueue", "-8494"},
		"no service in the instance":      {a, "'Left', 'Nowhere', 'Talk', broker_instance => '" + instance + "'", "LeftQueue", "-8490"},
		"no service in CURRENT DATABASE":  {a, "'Left', 'Nowhere', 'Talk', broker_instance => 'Current Database'", "LeftQueue", "-8490"},
		"names are compared byte by byte": {a, "'Left', 'right', 'Talk', broker_instance => 'CURRENT DATABASE'", "LeftQueue", "-8490"},
	} {
		handle := c.s.Value("select sb.begin_dialog(" + c.begin + ")")
		say(c.s, handle, "zero")
		wantValue(t, name+": state", stateOf(c.s, handle), "ER")
		c.s.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'one')", handle)
		wantRows(t, name, take(c.s, "'"+c.queue+"'"), "Error "+c.code)
		wantRows(t, name+": only once", take(c.s, "'"+c.queue+"'"))
		wantRows(t, name+": nothing arrived", take(b, "'RightQueue'"))
		c.s.Exec("select sb.end_conversation($1::uuid)", handle)

		if c.code == "-8490" {
			continue // which is certain at once, whatever state the broker is in
		}
		// The same when it comes out only later, at delivery.
		a.Exec("select sb.disable_broker()")
		handle = c.s.Value("select sb.begin_dialog(" + c.begin + ")")
		say(c.s, handle, "zero", "one")
		ended := c.s.Value("select sb.begin_dialog(" + c.begin + ")")
		say(c.s, ended, "zero")
		c.s.Exec("select sb.end_conversation($1::uuid)", ended)
		wantValue(t, name+": state, undelivered", stateOf(c.s, handle)+stateOf(c.s, ended), "CODO")
		a.Exec("select sb.enable_broker()")
		wantValue(t, name+": state, delivered", stateOf(c.s, handle), "ER")
		wantValue(t, name+": who had ended is gone", stateOf(c.s, ended), "")
		wantRows(t, name+": kept to be sent again (R-251)", waitingIn(c.s, handle), "zero", "one")
		a.Exec("select sb.deliver()")
		wantRows(t, name+": once", take(c.s, "'"+c.queue+"'"), "Error "+c.code)
		wantRows(t, name+": once", take(c.s, "'"+c.queue+"'"))
		c.s.Exec("select sb.end_conversation($1::uuid)", handle)
		wantRows(t, name+": left over", leftOver(a))
	}

	// A right granted in time, also to everybody.
	a.Exec("select sb.grant_send('Right', 'public')")
	handle := s.Value("select sb.begin_dialog('Strangers', 'Right', 'Talk')")
	say(s, handle, "welcome")
	wantRows(t, "granted", take(b, "'RightQueue'"), "welcome")

	// A foreign instance is not this one: it waits for a route.
	foreign := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', broker_instance => 'deadbeef-dead-beef-dead-beefdeadbeef')")
	say(a, foreign, "zero")
	wantRows(t, "foreign", waitingIn(a, foreign), "zero")
	wantValue(t, "foreign", stateOf(a, foreign), "CO")
	a.Exec("select sb.deliver()")
	wantRows(t, "foreign", waitingIn(a, foreign), "zero")
	if status := a.Value("select sb.get_transmission_status($1::uuid)", foreign); status == "" {
		t.Error("no status")
	}
}

// The pattern of resending: on an Error that may be retried, what waits is read, sent on a new dialog, and the
// old one ended.
// Rules
func TestResend(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec(stopRight)
	left := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '1 h')")
	say(a, left, "zero", "one")
	passTime(a, "2 hours")
	a.Begin()
	wantRows(t, "expired", take(a, "'LeftQueue'"), "Error -8489")
	renewed := beginTalk(a)
	a.Exec(`
select sb.send_batch($2::uuid, 'Note', array_agg(t.message_body order by t.message_sequence_number))
  from sb.transmission_queue as t where t.conversation_handle = $1::uuid`, left, renewed)
	a.Exec("select sb.end_conversation($1::uuid)", left)
	a.Commit()
	wantRows(t, "waiting again", waitingIn(a, renewed), "zero", "one")
	wantRows(t, "waiting no more", a.Query("select 1 from sb.transmission_queue where conversation_handle = $1::uuid", left))
	a.Exec(startRight)
	wantRows(t, "arrived once", take(b, "'RightQueue'"), "zero", "one")
	wantRows(t, "arrived once", take(b, "'RightQueue'"))
}

// A peer that was cleaned up says nothing; who sends to it learns -8462.
// Rules
func TestPeerCleanedUp(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for _, parked := range []bool{false, true} {
		left, right := startTalk(a, "zero")
		if parked {
			a.Exec(stopRight)
			say(a, left, "waits")
		}
		b.Exec("select sb.end_conversation($1::uuid, cleanup => true)", right)
		wantValue(t, "nothing was announced", stateOf(a, left), "CO")
		if parked {
			a.Exec(startRight)
		} else {
			say(a, left, "to nobody")
		}
		wantValue(t, "initiator", stateOf(a, left), "ER")
		a.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", left)
		wantRows(t, "error", take(a, "'LeftQueue'"), "Error -8462")
		a.Exec("select sb.end_conversation($1::uuid)", left)
	}
	// The target's side.
	left, right := startTalk(a, "zero")
	a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", left)
	wantValue(t, "target", stateOf(b, right), "CO")
	wantRows(t, "what had arrived", take(b, "'RightQueue'"), "zero")
	say(b, right, "to nobody")
	wantRows(t, "error", take(b, "'RightQueue'"), "Error -8462")
	b.Exec("select sb.end_conversation($1::uuid)", right)
	// Nobody is told when he does not send, and END of such a side is quiet.
	left, right = startTalk(a, "zero")
	a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", left)
	b.Exec("select sb.end_conversation($1::uuid)", right)
	// In every state.
	c := newScene(a)
	for _, handle := range []string{c.so, c.co, c.coPeer, c.di, c.er, c.do, c.expired, c.ask, c.askPeer} {
		a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", handle)
		wantValue(t, "cleaned up", stateOf(a, handle), "")
		wantRows(t, "cleaned up", waitingIn(a, handle))
	}
}

// Starting a queue while others send: everything arrives, each conversation in order.
func TestStartUnderLoad(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	const senders, messages = 4, 60
	var results []<-chan error
	var rights []string
	for i := range senders {
		s := db.Session(t, "sender"+strconv.Itoa(i))
		left, right := startTalk(a)
		rights = append(rights, right)
		results = append(results, s.Go(func(ctx context.Context, conn *pgx.Conn) error {
			for j := range messages {
				if _, err := conn.Exec(ctx, "select sb.send($1::uuid, 'Note', $2::text)", left, strconv.Itoa(j)); err != nil {
					return fmt.Errorf("message %d: %w", j, err)
				}
			}
			return nil
		}))
	}
	got := map[string][]string{}
	receive := func() {
		for {
			rows := b.Query("select conversation_handle, sb.body_text(message_body) from sb.receive('RightQueue')")
			if len(rows) == 0 {
				return
			}
			for _, row := range rows {
				got[row[:36]] = append(got[row[:36]], row[37:])
			}
		}
	}
	for range 12 {
		a.Exec(stopRight)
		time.Sleep(5 * time.Millisecond)
		a.Exec(startRight)
		receive()
	}
	for _, result := range results {
		if err := <-result; err != nil {
			t.Fatal(err)
		}
	}
	// A SEND that saw OFF and committed after ON is moved on by hand.
	a.Exec("select sb.deliver()")
	receive()
	for _, right := range rights {
		for j := range messages {
			if len(got[right]) <= j || got[right][j] != strconv.Itoa(j) {
				t.Fatalf("%s got %q", right, got[right])
			}
		}
	}
	wantRows(t, "still waiting", a.Query("select 1 from sb.transmission_queue"))
}

// A SEND that saw the queue off and commits after it was switched on parks its row; it announces that, and deliver
// brings it on.
func TestStrandedRow(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "zero")
	a.Exec(stopRight)
	b.Exec("listen sb_events")
	a.Begin()
	say(a, left, "one")
	b.Exec(startRight)
	a.Commit()
	wantRows(t, "stranded", waitingIn(a, left), "one")
	heard := false
	for !heard {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		n, err := b.Conn.WaitForNotification(ctx)
		cancel()
		if err != nil {
			t.Fatal("nobody was told: ", err)
		}
		heard = n.Channel == "sb_events" && strings.Contains(n.Payload, "transmission_waiting")
	}
	a.Begin()
	say(a, left, "two")
	a.Commit()
	wantRows(t, "in order", take(b, "'RightQueue', for_conversation => '"+right+"'"), "zero", "one", "two")

	// deliver says how many, leaves alone who is busy, and comes back.
	a.Exec(stopRight)
	say(a, left, "three", "four")
	a.Exec("update sb_internal.queue set is_enabled = true where name = 'RightQueue'")
	a.Begin()
	say(a, left, "five")
	wantValue(t, "somebody sends", b.Value("select sb.deliver('RightQueue')"), "0")
	a.Rollback()
	wantValue(t, "another queue", b.Value("select sb.deliver('LeftQueue')"), "0")
	wantValue(t, "delivered", b.Value("select sb.deliver('RightQueue')"), "2")
	wantValue(t, "delivered", b.Value("select sb.deliver()"), "0")
}

// A waiting receive ends promptly with the error when its queue is switched off or dropped.
// Rules
func TestWaitingReceiveEnds(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	_, right := startTalk(a, "zero")
	take(b, "'RightQueue'")
	for _, waiting := range []string{
		"select * from sb.receive('RightQueue', timeout => '-1 s')",
		"select * from sb.receive('RightQueue', timeout => '60 s')",
		"select * from sb.receive('RightQueue', for_conversation => '" + right + "', timeout => '-1 s')",
		"select * from sb.receive('RightQueue', for_group => (select conversation_group_id from sb.conversation_endpoints where conversation_handle = '" + right + "'), timeout => '-1 s')",
		"select sb.get_conversation_group('RightQueue', '-1 s')",
		"select sb.get_conversation_group('RightQueue', '60 s')",
	} {
		result := b.GoExec(waiting)
		time.Sleep(20 * time.Millisecond)
		a.Exec(stopRight)
		took := elapsed(func() { wantCode(t, waiting, wait(t, result), "S9617") })
		if took > 2*time.Second {
			t.Errorf("%s: took %v", waiting, took)
		}
		a.Exec(startRight)
	}
	a.Exec("select sb.create_queue('Doomed')")
	for _, waiting := range []string{
		"select * from sb.receive('Doomed', timeout => '-1 s')",
		"select sb.get_conversation_group('Doomed', '-1 s')",
	} {
		result := b.GoExec(waiting)
		time.Sleep(20 * time.Millisecond)
		a.Exec("select sb.drop_queue('Doomed')")
		wantCode(t, waiting, wait(t, result), "S0208")
		a.Exec("select sb.create_queue('Doomed')")
	}
	// The same name again is another queue.
	result := b.GoExec("select * from sb.receive('Doomed', timeout => '-1 s')")
	time.Sleep(20 * time.Millisecond)
	a.Exec("do $$ begin perform sb.drop_queue('Doomed'); perform sb.create_queue('Doomed'); end $$")
	wantCode(t, "made anew", wait(t, result), "S0208")
}

// While the broker is disabled SEND and END work and receive hands out what is there.
// Rules: R-119
func TestBrokerDisabled(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "zero")
	a.Exec("select sb.disable_broker()")
	say(a, left, "one")
	say(b, right, "back")
	wantRows(t, "what had arrived", take(b, "'RightQueue'"), "zero")
	wantRows(t, "nothing else", take(b, "'RightQueue'"))
	b.Exec("select sb.end_conversation($1::uuid)", right)
	wantValue(t, "target", stateOf(b, right), "DO")
	wantValue(t, "initiator", stateOf(a, left), "CO")
	a.Exec("select sb.alter_queue('RightQueue', enabled => true), sb.deliver(), sb.maintain()")
	wantRows(t, "nothing is delivered", waitingIn(b, right), "back", "EndDialog")
	a.Exec("select sb.enable_broker()")
	wantValue(t, "target", stateOf(b, right), "")
	wantRows(t, "delivered", take(a, "'LeftQueue'"), "back", "EndDialog")
	a.Exec("select sb.end_conversation($1::uuid)", left)
	wantRows(t, "left over", leftOver(a))
}

// With honor_broker_priority the transmission queue is emptied by priority, without it in no promised order.
// Rules
func TestTransmissionByPriority(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec("select sb.create_contract('Urgent', sent_by_any => '{Note}')")
	a.Exec("select sb.alter_service('Right', add_contracts => '{Urgent}')")
	a.Exec("select sb.create_broker_priority('high', 'Urgent', 'Left', priority_level => 9::smallint)")
	a.Exec("select sb.set_option('honor_broker_priority', 'on')")
	a.Exec(stopRight)
	for range 8 {
		startTalk(a, "plain")
	}
	urgent := a.Value("select sb.begin_dialog('Left', 'Right', 'Urgent')")
	say(a, urgent, "urgent")
	a.Exec(startRight)
	first := b.Value("select sb.body_text(message_body) from sb.queue_messages where queue_name = 'RightQueue' order by queuing_order limit 1")
	wantValue(t, "first out", first, "urgent")
}
