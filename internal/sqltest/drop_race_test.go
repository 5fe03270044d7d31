package sqltest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// Dialogs begin on objects that are looked up by name, and a drop in the same moment must not leave one behind: whoever
// comes second waits for the other and sees what he has done.
func TestBeginAgainstDrops(t *testing.T) {
	t.Parallel()
	for _, object := range []struct{ name, drop, code string }{
		{"service", "select sb.drop_service('Doomed')", "S8423"},
		{"contract", "select sb.drop_contract('Shaky')", "S8425"},
	} {
		t.Run(object.name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			dropper, beginner := db.Session(t, "dropper"), db.Session(t, "beginner")
			dropper.Exec(`
select sb.create_contract('Shaky', sent_by_any => '{DEFAULT}'), sb.create_queue('Queue');
select sb.create_service('Doomed', 'Queue'), sb.create_service('Peer', 'Queue', '{Shaky}');
select sb.alter_service('Peer', drop_contracts => '{Shaky}')`)
			const begin = "select sb.begin_dialog('Doomed', 'Peer', 'Shaky')"

			// The dialog first: the drop waits, and ends it.
			beginner.Begin()
			beginner.Exec(begin)
			dropper.Begin()
			dropped := dropper.GoExec(object.drop)
			pgtest.WaitBlocked(t, dropper, beginner)
			beginner.Commit()
			if err := wait(t, dropped); err != nil {
				t.Fatal(err)
			}
			wantValue(t, "endpoints", dropper.Value("select count(*) from sb_internal.endpoint"), "0")
			dropper.Rollback()

			// The drop first: the dialog waits, and finds nothing.
			dropper.Begin()
			dropper.Exec(object.drop)
			begun := beginner.GoExec(begin)
			pgtest.WaitBlocked(t, beginner, dropper)
			dropper.Commit()
			wantCode(t, "begin after the drop", wait(t, begun), object.code)
		})
	}
}

// A repeatable read transaction sees the objects as they were: it fails rather than begin on what is gone.
func TestBeginOnOldSnapshot(t *testing.T) {
	t.Parallel()
	for _, object := range []struct{ name, drop string }{
		{"service", "select sb.drop_service('Doomed')"},
		{"contract", "select sb.drop_contract('Shaky')"},
	} {
		t.Run(object.name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			dropper, beginner := db.Session(t, "dropper"), db.Session(t, "beginner")
			dropper.Exec(`
select sb.create_contract('Shaky', sent_by_any => '{DEFAULT}'), sb.create_queue('Queue'), sb.create_service('Doomed', 'Queue')`)
			beginner.Exec("begin isolation level repeatable read")
			beginner.Exec("select count(*) from sb.services")
			dropper.Exec(object.drop)
			beginner.ExecError("40001", "select sb.begin_dialog('Doomed', 'Doomed', 'Shaky')")
			beginner.Rollback()

			// And the other way round, a drop waits for it.
			dropper.Exec(`select sb.create_service('Doomed', 'Queue') where not exists (select from sb.services where name = 'Doomed')`)
			dropper.Exec(`select sb.create_contract('Shaky', sent_by_any => '{DEFAULT}')
  where not exists (select from sb.service_contracts where name = 'Shaky')`)
			beginner.Exec("begin isolation level serializable")
			beginner.Exec("select sb.begin_dialog('Doomed', 'Doomed', 'Shaky')")
			dropped := dropper.GoExec(object.drop)
			pgtest.WaitBlocked(t, dropper, beginner)
			beginner.Commit()
			if err := wait(t, dropped); err != nil {
				t.Fatal(err)
			}
			wantValue(t, "endpoints", dropper.Value("select count(*) from sb_internal.endpoint"), "0")
		})
	}
}

// The first message to a service that is being dropped waits for the drop, and then for the service.
func TestFirstSendAgainstDrop(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	dropper, sender := db.Session(t, "dropper"), db.Session(t, "sender")
	dropper.Exec(`
select sb.create_queue('Here'), sb.create_queue('There');
select sb.create_service('Sender', 'Here'), sb.create_service('Doomed', 'There', '{DEFAULT}')`)
	for _, isolation := range []string{"read committed", "repeatable read"} {
		handle := sender.Value("select sb.begin_dialog('Sender', 'Doomed')")
		dropper.Begin()
		dropper.Exec("select sb.drop_service('Doomed')")
		sender.Exec("begin isolation level " + isolation)
		sent := sender.GoExec("select sb.send($1::uuid, 'DEFAULT', 'first'::text)", handle)
		pgtest.WaitBlocked(t, sender, dropper)
		dropper.Commit()
		err := wait(t, sent)
		if isolation == "repeatable read" {
			wantCode(t, "send on an old snapshot", err, "40001")
			sender.Rollback()
		} else {
			wantCode(t, "send", err, "")
			sender.Commit()
			wantValue(t, "parked", sender.Value("select count(*) from sb.transmission_queue"), "1")
		}
		dropper.Exec("select sb.create_service('Doomed', 'There', '{DEFAULT}')")
	}
}

// Drops wait for those who are at work and then do what is to be done about them: who cannot see it must not try.
func TestDropsNeedReadCommitted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := db.Session(t, "setup")
	s.Exec(`
select sb.create_contract('K', sent_by_any => '{DEFAULT}'), sb.create_queue('Q'), sb.create_queue('Other'), sb.create_service('S', 'Q')`)
	for _, isolation := range []string{"repeatable read", "serializable"} {
		for _, verb := range []string{"drop_service('S')", "drop_contract('K')", "alter_service('S', 'Other')", "new_broker()", "error_broker_conversations()"} {
			s.Exec("begin isolation level " + isolation)
			s.ExecError("25001", "select sb."+verb)
			s.Rollback()
		}
	}
}

// A group ends with its last conversation. Who cannot see that another one has joined must not end it, nor leave one
// behind for good that he cannot see to be empty.
func TestGroupsOnOldSnapshots(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *pgtest.Session, handle, other, sibling string){
		"begin": func(s *pgtest.Session, handle, _, _ string) {
			s.Exec("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation => $1::uuid)", handle)
		},
		"move": func(s *pgtest.Session, handle, other, _ string) {
			s.Exec("select sb.move_conversation($1::uuid, $2::uuid)", other, groupOf(s, handle))
		},
		"end of another": func(s *pgtest.Session, _, _, sibling string) {
			s.Exec("select sb.end_conversation($1::uuid)", sibling)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, old, rival := newTalk(t)
			handle, other := beginTalk(old), beginTalk(old)
			sibling := old.Value("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation => $1::uuid)", handle)
			if name != "end of another" {
				old.Exec("select sb.end_conversation($1::uuid)", sibling)
			}
			old.Exec("begin isolation level repeatable read")
			old.Query("select from sb.broker")
			change(rival, handle, other, sibling)
			old.Exec("select sb.end_conversation($1::uuid)", handle)
			old.Commit()
			check := func(when string) {
				t.Helper()
				wantValue(t, "conversations without a group "+when, old.Value(`
select count(*) from sb_internal.endpoint as e
 where not exists (select from sb.conversation_group as g where g.conversation_group_id = e.conversation_group_id)`), "0")
			}
			check("before maintain")
			old.Exec("select sb.maintain()")
			check("after maintain")
			wantValue(t, "groups without a conversation", old.Value(`
select count(*) from sb.conversation_group as g
 where not exists (select from sb_internal.endpoint as e where e.conversation_group_id = g.conversation_group_id)`), "0")
		})
	}
}

// What has come to a conversation since the snapshot does not outlive its END, and follows its MOVE.
func TestLooseEnds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *pgtest.Session, left, right string){
		"timer": func(s *pgtest.Session, left, _ string) {
			s.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", left)
		},
		"state": func(s *pgtest.Session, left, _ string) {
			s.Exec("select sb.set_state($1::uuid, '{}')", groupOf(s, left))
		},
		"cursor and retained messages": func(s *pgtest.Session, _, right string) {
			s.Exec("select sb.alter_queue('LeftQueue', retention => true)")
			s.Exec("select sb.send_batch($1::uuid, 'Note', array_fill('x'::bytea, array[100]))", right)
			wantValue(t, "received", s.Value("select count(*) from sb.receive('LeftQueue')"), "100")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, old, rival := newTalk(t)
			left, right := startTalk(old, "zero")
			take(old, "'RightQueue'")
			old.Exec("begin isolation level repeatable read")
			old.Query("select from sb.broker")
			change(rival, left, right)
			old.Exec("select sb.end_conversation($1::uuid)", left)
			old.Commit()
			old.Exec("select sb.end_conversation($1::uuid)", right)
			old.Exec("select sb.maintain()")
			wantRows(t, "left over", leftOver(old))
		})
	}
	t.Run("timer of a moved conversation", func(t *testing.T) {
		t.Parallel()
		_, old, rival := newTalk(t)
		left, other := beginTalk(old), beginTalk(old)
		old.Exec("begin isolation level repeatable read")
		old.Query("select from sb.broker")
		rival.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", left)
		old.Exec("select sb.move_conversation($1::uuid, $2::uuid)", left, groupOf(old, other))
		old.Commit()
		old.Exec("select sb.maintain()")
		passTime(old, "2 h")
		wantRows(t, "received", take(old, fmt.Sprintf("'LeftQueue', for_group => '%s'", groupOf(old, other))), "DialogTimer")
	})
	t.Run("held by others", func(t *testing.T) {
		t.Parallel()
		_, old, rival := newTalk(t)
		left := beginTalk(old)
		group := groupOf(old, left)
		old.Exec("begin isolation level repeatable read")
		old.Exec("select sb.end_conversation($1::uuid)", left)
		old.Commit()
		rival.Begin()
		rival.Exec("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $1::uuid)", group)
		old.Exec("select sb.maintain()") // waits for nobody
		rival.Rollback()
		wantValue(t, "groups", old.Value("select count(*) from sb.conversation_group"), "1")
		old.Exec("select sb.maintain()")
		wantRows(t, "left over", leftOver(old))
	})
}

// Who has not seen that a service has moved to another queue must not put anything into the old one.
func TestServiceMovedSinceSnapshot(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"send":         "select sb.send($left, 'Note', 'x')",
		"first send":   "select sb.send(sb.begin_dialog('Left', 'Right', 'Talk'), 'Note', 'x')",
		"end":          "select sb.end_conversation($left)",
		"timer":        "select sb.begin_conversation_timer($right, '1 h')",
		"begin mortal": "select sb.begin_dialog('Right', 'Left', 'Talk', lifetime => '1 h')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, old, rival := newTalk(t)
			left, right := startTalk(old, "zero")
			old.Exec("select sb.create_queue('NewQueue')")
			statement := strings.NewReplacer("$left", "'"+left+"'", "$right", "'"+right+"'").Replace(statement)
			old.Exec("begin isolation level repeatable read")
			old.Query("select from sb.broker")
			rival.Exec("select sb.alter_service('Right', 'NewQueue')")
			old.ExecError("40001", statement)
			old.Rollback()
			old.Exec("begin isolation level repeatable read")
			old.Exec(statement)
			old.Commit()
			wantRows(t, "in the old queue", old.Query(`
select from sb.queue_messages as m where m.queue_name = 'RightQueue'
 union all
select from sb_internal.due as d join sb.service_queues as q on q.queue_id = d.queue_id where q.name = 'RightQueue'`))
		})
	}
}

// A drop that waits for one open transaction holds up nobody else for long.
func TestWaitingDropLetsOthersBegin(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	open, dropper, other := db.Session(t, "open"), db.Session(t, "dropper"), db.Session(t, "other")
	open.Exec("select sb.create_queue('Q'), sb.create_service('Doomed', 'Q', '{DEFAULT}')")
	open.Begin()
	open.Exec("select sb.begin_dialog('Doomed', 'Doomed')")
	dropped := dropper.GoExec("select sb.drop_service('Doomed')")
	pgtest.WaitBlocked(t, dropper, open)
	// Past the time in which it only waits for moments.
	for deadline := time.Now().Add(7 * time.Second); time.Now().Before(deadline); {
		if took := elapsed(func() { other.Exec("select sb.begin_dialog('Doomed', 'Doomed')") }); took > 5*time.Second {
			t.Fatalf("begin_dialog took %v", took)
		}
	}
	open.Commit()
	if err := wait(t, dropped); err != nil {
		t.Fatal(err)
	}
	wantValue(t, "endpoints", dropper.Value("select count(*) from sb_internal.endpoint"), "0")
}

// Nor does one that has the name already and waits for what has begun before that.
func TestDropWithTheNameGivesItBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	first, second, dropper, other := db.Session(t, "first"), db.Session(t, "second"), db.Session(t, "dropper"), db.Session(t, "other")
	other.Exec("select sb.create_queue('Q'), sb.create_service('S', 'Q'), sb.create_queue('Doomed'), sb.create_service('Doomed', 'Doomed', '{DEFAULT}')")
	begin := func() { other.Exec("select sb.send(sb.begin_dialog('S', 'Doomed'), 'DEFAULT', 'x'::text)") }
	begin()
	first.Begin()
	wantValue(t, "first", first.Value("select count(*) from sb.receive('Doomed', 1)"), "1")
	dropped := dropper.GoExec("select sb.drop_service('Doomed')")
	for insists := time.Now().Add(7 * time.Second); time.Now().Before(insists); {
		pgtest.WaitBlocked(t, dropper, first)
	}
	begin()
	second.Begin()
	wantValue(t, "second", second.Value("select count(*) from sb.receive('Doomed', 1)"), "1")
	first.Commit() // the first pass is over, the second meets the new dialog
	pgtest.WaitBlocked(t, dropper, second)
	for deadline := time.Now().Add(4 * time.Second); time.Now().Before(deadline); {
		if took := elapsed(func() {
			other.Begin()
			begin()
			other.Rollback()
		}); took > 2*time.Second {
			t.Fatalf("begin_dialog and send took %v", took)
		}
	}
	second.Commit()
	if err := wait(t, dropped); err != nil {
		t.Fatal(err)
	}
}
