package sqltest

import (
	"testing"
	"time"
)

// One timer a side: set again it is put off, cancelled it is gone, fired it is over; the other side never sees it.
// Rules
func TestTimer(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "zero")
	take(b, "'RightQueue'")
	timer := "select sb.begin_conversation_timer($1::uuid, $2::text::interval)"
	shown := func() string {
		return a.Value("select dialog_timer > clock_timestamp() from sb.conversation_endpoints where conversation_handle = $1::uuid", left)
	}
	wantValue(t, "none", shown(), "NULL")
	a.Exec(timer, left, "1 hour")
	wantValue(t, "set", shown(), "t")
	wantRows(t, "not yet", take(a, "'LeftQueue'"))
	passTime(a, "30 min")
	a.Exec(timer, left, "1 hour") // replaces
	passTime(a, "45 min")
	wantRows(t, "put off", take(a, "'LeftQueue'"))
	passTime(a, "45 min")
	wantRows(t, "the other side", take(b, "'RightQueue'"))
	wantRows(t, "due", take(a, "'LeftQueue'"), "DialogTimer")
	wantRows(t, "once", take(a, "'LeftQueue'"))
	wantValue(t, "over", shown(), "NULL")

	a.Exec(timer, left, "1 hour")
	a.Exec("select sb.cancel_conversation_timer($1::uuid)", left)
	a.Exec("select sb.cancel_conversation_timer($1::uuid)", left) // nothing to cancel
	passTime(a, "2 hours")
	wantRows(t, "cancelled", take(a, "'LeftQueue'"))

	// Due and not received, a timer can still be replaced or cancelled: it is the one timer of the side.
	a.Exec(timer, left, "1 hour")
	passTime(a, "2 hours")
	a.Exec(timer, left, "1 hour")
	wantRows(t, "replaced when due", take(a, "'LeftQueue'"))
	passTime(a, "2 hours")
	a.Exec("select sb.cancel_conversation_timer($1::uuid)", left)
	wantRows(t, "cancelled when due", take(a, "'LeftQueue'"))

	// Both sides have one each.
	a.Exec(timer, left, "1 hour")
	b.Exec(timer, right, "2 hours")
	passTime(a, "90 min")
	wantRows(t, "left", take(a, "'LeftQueue'"), "DialogTimer")
	wantRows(t, "right", take(b, "'RightQueue'"))
	passTime(a, "90 min")
	wantRows(t, "right", take(b, "'RightQueue'"), "DialogTimer")

	// It fires by itself, in real time, for a receive that waits and for get_conversation_group.
	a.Exec(timer, left, "100 ms")
	wantRows(t, "waited for", take(a, "'LeftQueue', timeout => '10 s'"), "DialogTimer")
	a.Exec(timer, left, "100 ms")
	wantValue(t, "waited for", a.Value("select sb.get_conversation_group('LeftQueue', '10 s')"), groupOf(a, left))
	wantRows(t, "and received", take(a, "'LeftQueue'"), "DialogTimer")
	a.Exec(timer, left, "100 ms")
	wantRows(t, "waited for by handle", take(a, "'LeftQueue', for_conversation => '"+left+"', timeout => '10 s'"), "DialogTimer")

	// An old transaction sees a timer that fell due after it began.
	a.Begin()
	a.Exec("select 1")
	b.Exec(timer, left, "1 ms")
	time.Sleep(5 * time.Millisecond)
	wantRows(t, "in an old transaction", take(a, "'LeftQueue'"), "DialogTimer")
	a.Commit()
}

// A timer in every state that takes one, and what END does to it.
// Rules
func TestTimerStates(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// The scheduler pattern: never sent on, armed again and again.
	alone := beginTalk(a)
	for range 3 {
		a.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", alone)
		passTime(a, "2 hours")
		wantRows(t, "scheduler", take(a, "'LeftQueue'"), "DialogTimer")
	}
	wantValue(t, "state", stateOf(a, alone), "SO")
	a.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", alone)
	a.Exec("select sb.end_conversation($1::uuid)", alone)
	wantRows(t, "END takes the timer along", leftOver(a))

	for _, how := range []string{"", ", 4, 'x'"} {
		left, right := startTalk(a, "zero")
		b.Exec("select sb.end_conversation($1::uuid"+how+")", right)
		a.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", left)
		passTime(a, "2 hours")
		if got := take(a, "'LeftQueue'"); got[0] != "DialogTimer" || len(got) != 2 {
			t.Errorf("received %q", got)
		}
		a.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", left)
		passTime(a, "2 hours")
		wantRows(t, "after the end", take(a, "'LeftQueue'"), "DialogTimer")
		a.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", left)
		a.Exec("select sb.end_conversation($1::uuid)", left)
		wantRows(t, "left over", leftOver(a))
	}
}

// A timer that is armed again and again must not keep the queue from its messages, nor they the timers.
func TestTimersAndMessagesAreFair(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "ask")
	take(b, "'RightQueue'")
	// The old message stays behind the timer, which goes first: it must not hold the front of the queue for it.
	say(b, right, "old")
	a.Exec("select sb.begin_conversation_timer($1::uuid, '1 microsecond')", left)
	_, otherRight := startTalk(a, "ask")
	take(b, "'RightQueue'")
	say(b, otherRight, "another conversation's")
	seen := map[string]int{}
	for range 50 {
		for _, body := range take(a, "'LeftQueue', 1") {
			seen[body]++
			if body == "DialogTimer" {
				a.Exec("select sb.begin_conversation_timer($1::uuid, '1 microsecond')", left)
			}
		}
		if seen["another conversation's"] > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if seen["another conversation's"] != 1 {
		t.Errorf("starved by a timer: %v", seen)
	}
	// A stream of messages on other conversations, and one timer.
	a.Exec("select sb.cancel_conversation_timer($1::uuid)", left)
	a.Exec("select sb.begin_conversation_timer($1::uuid, '1 ms')", left)
	// The clock is looked at within a budget, so that it may take a while on a busy machine.
	fired := false
	for start := time.Now(); !fired && time.Since(start) < 20*time.Second; {
		say(b, otherRight, "more")
		for _, body := range take(a, "'LeftQueue', 1") {
			fired = fired || body == "DialogTimer"
		}
	}
	if !fired {
		t.Error("a timer is starved by messages")
	}
}

// The end of the lifetime, on both sides, without anybody having done anything.
// Rules
func TestLifetime(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	begin := func() (left, right string) {
		left = a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '1 hour')")
		say(a, left, "zero")
		return left, peerOf(a, left)
	}
	left, right := begin()
	say(b, right, "back")
	wantValue(t, "both sides know", a.Value("select count(distinct lifetime) || ' ' || count(lifetime) from sb.conversation_endpoints"), "1 2")
	a.ExecError("S8410", "select sb.begin_conversation_timer($1::uuid, '2 hours')", left)
	a.Exec("select sb.begin_conversation_timer($1::uuid, '30 min')", left)
	wantValue(t, "before", stateOf(a, left)+stateOf(b, right), "COCO")
	passTime(a, "2 hours")
	wantValue(t, "after", stateOf(a, left)+stateOf(b, right), "ERER")
	for _, handle := range []string{left, right} {
		a.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", handle)
	}
	wantRows(t, "peeked", a.Query("select queue_name, message_type_id, sb.error_code(message_body) from sb.queue_messages where message_type_id in (1, 5) order by 1, 2"),
		"LeftQueue|1|-8489", "LeftQueue|5|NULL", "RightQueue|1|-8489")
	wantRows(t, "left: timer, error, then what had arrived (R-255)", take(a, "'LeftQueue'"), "DialogTimer", "Error -8489", "back")
	wantRows(t, "right", take(b, "'RightQueue'"), "Error -8489", "zero")
	wantValue(t, "received", stateOf(a, left)+stateOf(b, right), "ERER")
	for _, handle := range []string{left, right} {
		a.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", handle)
		a.Exec("select sb.end_conversation($1::uuid)", handle)
	}
	wantRows(t, "left over", leftOver(a))

	// One by one.
	left, right = begin()
	passTime(a, "2 hours")
	wantRows(t, "first", take(b, "'RightQueue', 1"), "Error -8489")
	wantRows(t, "second", take(b, "'RightQueue', 1"), "zero")
	a.Exec("select sb.end_conversation($1::uuid), sb.end_conversation($2::uuid)", left, right)

	// END after the expiry, without having received anything; nothing is sent to the other side, which has its own.
	left, right = begin()
	passTime(a, "2 hours")
	a.Exec("select sb.end_conversation($1::uuid, 5, 'not delivered')", left)
	wantRows(t, "the other side", take(b, "'RightQueue'"), "Error -8489", "zero")
	b.Exec("select sb.end_conversation($1::uuid)", right)
	wantRows(t, "left over", leftOver(a))

	// DI, ER and DO stay as they are.
	left, right = begin()
	b.Exec("select sb.end_conversation($1::uuid)", right)
	passTime(a, "2 hours")
	wantValue(t, "DI, unread", stateOf(a, left), "DI")
	wantRows(t, "no error", take(a, "'LeftQueue'"), "EndDialog")
	wantRows(t, "no error", take(a, "'LeftQueue'"))
	wantValue(t, "DI", stateOf(a, left), "DI")
	a.Exec("select sb.end_conversation($1::uuid)", left)

	left, right = begin()
	b.Exec("select sb.end_conversation($1::uuid)", right)
	wantRows(t, "received in time", take(a, "'LeftQueue'"), "EndDialog")
	passTime(a, "2 hours")
	wantRows(t, "no error", take(a, "'LeftQueue'"))
	wantValue(t, "peeked", a.Value("select count(*) from sb.queue_messages"), "0")
	wantValue(t, "DI", stateOf(a, left), "DI")
	a.Exec("select sb.end_conversation($1::uuid)", left)

	left, right = begin()
	b.Exec("select sb.end_conversation($1::uuid, 6, 'x')", right)
	wantRows(t, "in time", take(a, "'LeftQueue'"), "Error 6")
	passTime(a, "2 hours")
	wantRows(t, "no second error", take(a, "'LeftQueue'"))
	a.Exec("select sb.end_conversation($1::uuid)", left)

	left, right = begin()
	a.Exec(stopRight)
	a.Exec("select sb.end_conversation($1::uuid)", left)
	passTime(a, "2 hours")
	wantValue(t, "DO", stateOf(a, left), "DO")
	wantRows(t, "no error for who has ended", take(a, "'LeftQueue'"))
	a.Exec(startRight)
	wantValue(t, "DO finishes", stateOf(a, left), "")
	// The target was still talking when its time was over: ER, and an end that comes later changes nothing.
	wantRows(t, "target", take(b, "'RightQueue'"), "Error -8489", "zero", "EndDialog")
	wantValue(t, "ER never falls back to DI", stateOf(b, right), "ER")
	b.Exec("select sb.end_conversation($1::uuid)", right)
	wantRows(t, "left over", leftOver(a))

	// Never sent on: SO becomes ER too.
	left = a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '1 hour')")
	passTime(a, "2 hours")
	wantRows(t, "SO", take(a, "'LeftQueue'"), "Error -8489")
	wantValue(t, "SO", stateOf(a, left), "ER")
	a.Exec("select sb.end_conversation($1::uuid)", left)
	wantRows(t, "left over", leftOver(a))

	// In real time.
	left = a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '200 ms')")
	say(a, left, "zero")
	wantRows(t, "waited for", take(a, "'LeftQueue', timeout => '10 s'"), "Error -8489")
}

// Messages that wait when the lifetime ends are dropped by END, and never delivered.
// Rules
func TestLifetimeInTheTransmissionQueue(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec(stopRight)
	left := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '1 hour')")
	say(a, left, "zero")
	passTime(a, "2 hours")
	a.Exec(startRight)
	wantRows(t, "kept", waitingIn(a, left), "zero")
	wantRows(t, "not delivered", take(b, "'RightQueue'"))
	a.Exec("select sb.end_conversation($1::uuid)", left)
	wantRows(t, "left over", leftOver(a))
}

// Timers and lifetimes that fell due while the queue was stopped are there when it starts, in their order.
// Rules
func TestDueWhileTheQueueWasStopped(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '3 hours')")
	say(a, left, "zero")
	right := peerOf(a, left)
	b.Exec("select sb.begin_conversation_timer($1::uuid, '1 hour')", right)
	a.Exec(stopRight)
	passTime(a, "2 hours")
	b.Exec("select sb.begin_conversation_timer($1::uuid, '30 min')", right) // also while the queue is off
	passTime(a, "2 hours")
	b.ExecError("S9617", "select * from sb.receive('RightQueue')")
	a.Exec(startRight)
	wantRows(t, "all there", take(b, "'RightQueue'"), "DialogTimer", "Error -8489", "zero")
}

// After an Error SEND fails, what had arrived before can be received, and no later EndDialog makes it DI again.
// Rules
func TestErrorAtAConversation(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "zero", "one")
	a.Exec("select sb.end_conversation($1::uuid, 77, 'broken')", left)
	b.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", right) // not even received yet
	wantRows(t, "first", take(b, "'RightQueue', 1"), "Error 77")
	b.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", right)
	wantRows(t, "then", take(b, "'RightQueue', 1"), "zero")
	wantRows(t, "then", take(b, "'RightQueue', 1, for_conversation => '"+right+"'"), "one")
	wantValue(t, "state", stateOf(b, right), "ER")
	b.Exec("select sb.end_conversation($1::uuid, 78, 'not delivered')", right)
	wantRows(t, "left over", leftOver(a))

	// An end and then an error of the broker: ER, in whatever order they are read.
	for _, readFirst := range []bool{true, false} {
		left, right = startTalk(a, "zero")
		a.Exec("select sb.end_conversation($1::uuid)", left)
		if readFirst {
			wantRows(t, "read", take(b, "'RightQueue'"), "zero", "EndDialog")
			wantValue(t, "state", stateOf(b, right), "DI")
		}
		a.Exec("select sb.error_broker_conversations()")
		if readFirst {
			wantRows(t, "read", take(b, "'RightQueue'"), "Error -9719")
		} else {
			wantRows(t, "read", take(b, "'RightQueue', 1"), "Error -9719")
			wantRows(t, "read", take(b, "'RightQueue'"), "zero", "EndDialog")
		}
		wantValue(t, "state", stateOf(b, right), "ER")
		b.Exec("select sb.end_conversation($1::uuid)", right)
		wantRows(t, "left over", leftOver(a))
	}

	// Read and rolled back: as before, and still an error.
	left, right = startTalk(a, "zero")
	a.Exec("select sb.end_conversation($1::uuid, 77, 'broken')", left)
	b.Begin()
	take(b, "'RightQueue'")
	b.Rollback()
	wantValue(t, "state", stateOf(b, right), "ER")
	wantRows(t, "again", take(b, "'RightQueue'"), "Error 77", "zero")

	// END in DI or ER tells the other side nothing.
	left, right = startTalk(a, "zero")
	b.Exec("select sb.end_conversation($1::uuid)", right)
	a.Exec("select sb.end_conversation($1::uuid, 3, 'x')", left)
	wantRows(t, "nobody is told", append(take(a, "'LeftQueue'"), take(b, "'RightQueue'")...))
}

// A service that moves to another queue takes its timers and lifetimes along, also those that are being set.
func TestTimersFollowTheService(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec("select sb.create_queue('NewQueue')")
	left := beginTalk(a)
	for i, work := range []string{
		"select sb.begin_conversation_timer('" + left + "', '2 h')",
		"select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '2 h')",
	} {
		from, to := "LeftQueue", "NewQueue"
		if i%2 == 1 {
			from, to = to, from
		}
		a.Begin()
		a.Exec(work)
		result := b.GoExec("select sb.alter_service('Left', $1)", to)
		// Either it waits for us, or it does not matter that it did not.
		select {
		case err := <-result:
			wantCode(t, work, err, "")
			a.Commit()
		case <-time.After(300 * time.Millisecond):
			a.Commit()
			wantCode(t, work, <-result, "")
		}
		passTime(a, "3 h")
		wantRows(t, work+": old queue", take(a, "'"+from+"'"))
		if got := take(a, "'"+to+"'"); len(got) != 1 {
			t.Errorf("%s: new queue: %q", work, got)
		}
	}
}
