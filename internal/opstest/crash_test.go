//go:build unix

package opstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

const pulse = "select is_receive_enabled, consecutive_rollbacks from sb.service_queues join sb.queue_statistics on queue_name = name where name = 'Inbox'"

// holdGroups opens transactions that have each received something and stay open.
func holdGroups(t *testing.T, url string, n int) {
	t.Helper()
	for range n {
		conn := connect(t, url)
		exec(t, conn, "begin")
		beginTalks(t, conn, 1) // so that there is something, whoever else receives
		if exec(t, conn, "select * from sb.receive('Inbox', 1)").RowsAffected() == 0 {
			t.Fatal("nothing to hold")
		}
	}
}

// beginTalks sends one message on each of n new dialogs from Source to Sink, with the books kept.
func beginTalks(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	exec(t, conn, `with d as materialized (select sb.begin_dialog('Source', 'Sink', 'Talk') as h from generate_series(1, $1::int4)),
		s as (insert into public.sent select h, 1 from d)
		select sb.send(d.h, 'Note', d.h || ' 1') from d`, n)
}

// The server crashes again and again under load: what was acknowledged is there, once, in order.
func TestCrashUnderLoad(t *testing.T) {
	t.Parallel()
	c := withBroker(t, nil)
	l := newLoad(t, 12, c.url("app", owner))
	for round := range 3 {
		holdGroups(t, *l.url.Load(), 8)
		if round == 0 {
			l.run(3, 4)
		}
		l.await(100)
		c.crash()
		c.start()
		url := c.url("app", owner) // on another port
		l.url.Store(&url)
	}
	conn := connect(t, *l.url.Load())
	want(t, conn, "after crashes", "select is_receive_enabled from sb.service_queues where name = 'Inbox'", "t")
	l.await(100)
	l.finish()
	if t.Failed() {
		return
	}

	// No false alarms, but true ones.
	beginTalks(t, conn, 1)
	for i := range 5 {
		want(t, conn, "before failure", pulse, fmt.Sprintf("t|%d", i))
		exec(t, conn, "begin; select * from sb.receive('Inbox'); rollback")
	}
	want(t, conn, "five failures", pulse, "f|5")
}

// A crash takes more receiving transactions along than the poison limit allows: that is no fault of theirs.
func TestCrashIsNoPoison(t *testing.T) {
	t.Parallel()
	c := withBroker(t, nil)
	exec(t, c.connect("app", owner), loadSetUp)
	for round := range 2 {
		holdGroups(t, c.url("app", owner), 16)    // the whole ring
		beginTalks(t, c.connect("app", owner), 1) // flushes what they have written
		c.crash()
		c.start()
		conn := c.connect("app", owner)
		want(t, conn, fmt.Sprint("after crash ", round), pulse, "t|0")
		exec(t, conn, takeSQL, 1)
		checkBooks(t, conn)
	}
}

// The ring of poison counts lies in sequences, and a crash leaves sequences ahead of where they were: old failures, long
// made good, must not come to stand where the newest are.
func TestPoisonRingAfterCrash(t *testing.T) {
	t.Parallel()
	c := withBroker(t, map[string]string{"autovacuum": "off"})
	conn := c.connect("app", owner)
	exec(t, conn, loadSetUp)
	for round := range 6 {
		beginTalks(t, conn, 40)
		commit := func(n int) {
			for range n {
				exec(t, conn, "select * from sb.receive('Inbox', 1)")
			}
		}
		commit(2*round + 1)
		for range 4 {
			exec(t, conn, "begin; select * from sb.receive('Inbox', 1); rollback")
		}
		want(t, conn, "before the good ones", pulse, "t|4")
		commit(9)
		want(t, conn, "before the crash", pulse, "t|0")
		for range round % 4 {
			exec(t, conn, "begin; select * from sb.receive('Inbox', 1); rollback")
		}
		c.crash()
		c.start()
		conn = c.connect("app", owner)
		want(t, conn, fmt.Sprint("round ", round, ", after the crash"), pulse, "t|0")
		// The first one is what the crash is noticed by, and may be forgotten with all before it.
		exec(t, conn, "begin; select * from sb.receive('Inbox', 1); rollback")
		want(t, conn, fmt.Sprint("round ", round, ", a failure after the crash"), strings.Replace(pulse, "consecutive_rollbacks", "consecutive_rollbacks <= 1", 1), "t|t")
		exec(t, conn, "begin; select * from sb.receive('Inbox', 1); rollback")
		want(t, conn, fmt.Sprint("round ", round, ", another"), strings.Replace(pulse, "consecutive_rollbacks", "consecutive_rollbacks between 1 and 2", 1), "t|t")
		commit(1)
		want(t, conn, fmt.Sprint("round ", round, ", a success after the crash"), pulse, "t|0")
	}
}

// An orderly restart forgets nothing.
func TestPoisonCountOverRestart(t *testing.T) {
	t.Parallel()
	c := withBroker(t, nil)
	conn := c.connect("app", owner)
	exec(t, conn, loadSetUp)
	beginTalks(t, conn, 1)
	for range 4 {
		exec(t, conn, "begin; select * from sb.receive('Inbox', 1); rollback")
	}
	closeConn(conn)
	c.stop()
	c.start()
	conn = c.connect("app", owner)
	want(t, conn, "after the restart", pulse, "t|4")
	exec(t, conn, "begin; select * from sb.receive('Inbox', 1); rollback")
	want(t, conn, "the fifth", pulse, "f|5")
}
