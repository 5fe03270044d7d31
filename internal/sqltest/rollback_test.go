package sqltest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// The rollback matrix: whatever a verb did is undone by ROLLBACK, by ROLLBACK TO SAVEPOINT and by the end of the
// session alike; afterwards nothing is locked, and everything goes on as if it had never been.
// Rules
func TestRollbackMatrix(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	var left, right, other, leftGroup, rightGroup string
	fresh := func() {
		left, right = startTalk(a, "zero", "one")
		say(a, right, "back")
		other = a.Value("select sb.begin_dialog('Right', 'Left', 'Talk')")
		leftGroup, rightGroup = groupOf(a, left), groupOf(a, right)
		a.Exec("select sb.begin_conversation_timer($1::uuid, '1 day')", right)
		a.Exec("select sb.set_state($1::uuid, '\"old\"')", rightGroup)
	}
	fill := func(sql string) string {
		return strings.NewReplacer("$left", "'"+left+"'", "$right", "'"+right+"'", "$other", "'"+other+"'",
			"$lgroup", "'"+leftGroup+"'", "$rgroup", "'"+rightGroup+"'", "$ogroup", "'"+groupOf(b, other)+"'").Replace(sql)
	}
	verbs := map[string]string{
		"begin":                  "select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '1 h')",
		"begin into a group":     "select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation => $left)",
		"begin and first send":   "select sb.send(sb.begin_dialog('Left', 'Right', 'Talk'), 'Note', 'x')",
		"first send":             "select sb.send($other, 'Note', 'x')",
		"send":                   "select sb.send($left, 'Note', 'x')",
		"send_batch":             "select sb.send_batch($left, 'Note', '{x,y,z}')",
		"multicast":              "select sb.multicast(array[$left, $other]::uuid[], 'Note', 'x')",
		"receive":                "select * from sb.receive('RightQueue')",
		"receive one":            "select * from sb.receive('RightQueue', 1)",
		"receive for group":      "select * from sb.receive('RightQueue', for_group => $rgroup)",
		"get_conversation_group": "select sb.get_conversation_group('RightQueue')",
		"move":                   "select sb.move_conversation($right, $ogroup)",
		"end":                    "select sb.end_conversation($right)",
		"end with error":         "select sb.end_conversation($right, 5, 'x')",
		"end with cleanup":       "select sb.end_conversation($right, cleanup => true)",
		"end, never sent":        "select sb.end_conversation($other)",
		"timer":                  "select sb.begin_conversation_timer($right, '1 h')",
		"timer cancelled":        "select sb.cancel_conversation_timer($right)",
		"set_state":              "select sb.set_state($rgroup, '\"new\"')",
		"all at once": "select sb.receive('RightQueue', 1); select sb.send($right, 'Note', 'y'); select sb.set_state($rgroup, '1'); " +
			"select sb.begin_conversation_timer($right, '1 s'); select sb.end_conversation($right); select sb.end_conversation($left)",
	}
	undo := map[string]func(work string){
		"rollback": func(work string) {
			a.Begin()
			a.Exec(work)
			a.Rollback()
		},
		"savepoint": func(work string) {
			a.Begin()
			a.Exec("savepoint s")
			a.Exec(work)
			a.Exec("rollback to s")
			a.Commit()
		},
		"savepoint, transaction still open": func(work string) {
			a.Begin()
			a.Exec("savepoint s")
			a.Exec(work)
			a.Exec("rollback to s")
		},
		"error": func(work string) {
			a.Begin()
			a.Exec(work)
			a.ExecError("22012", "select 1/0")
			a.Rollback()
		},
		"connection lost": func(work string) {
			lose(t, db, b, func(conn *pgx.Conn) {
				if _, err := conn.Exec(t.Context(), "begin; "+work); err != nil {
					t.Fatal(work, err)
				}
			})
		},
	}
	for name, verb := range verbs {
		for how, undone := range undo {
			fresh()
			what := name + ", " + how
			before := pgtest.Fingerprint(b)
			states := [2]string{stateOf(b, left), stateOf(b, right)}
			orders := b.Query("select queuing_order, message_sequence_number, status, sb.body_text(message_body) from sb.queue_messages order by 1")
			undone(fill(verb))
			wantValue(t, what+": tables", pgtest.Fingerprint(b), before)
			wantRows(t, what+": messages", b.Query("select queuing_order, message_sequence_number, status, sb.body_text(message_body) from sb.queue_messages order by 1"), orders...)
			wantValue(t, what+": states", stateOf(b, left)+stateOf(b, right), states[0]+states[1])

			// Nothing is locked: every verb of both sides runs now.
			b.Begin()
			b.Exec("set local lock_timeout = '2s'")
			for _, sql := range []string{
				"select sb.send($left, 'Note', 'two')",
				"select sb.begin_conversation_timer($right, '2 d')",
				"select sb.set_state($rgroup, '2')",
				"select sb.begin_dialog('Right', 'Left', 'Talk', related_conversation => $right)",
				"select sb.move_conversation($other, $rgroup)",
			} {
				b.Exec(fill(sql))
			}
			wantRows(t, what+": received", b.Query(fill("select message_sequence_number, sb.body_text(message_body) from sb.receive('RightQueue', for_conversation => $right)")),
				"0|zero", "1|one", "2|two")
			b.Exec(fill("select sb.end_conversation($right)"))
			b.Commit()
			if how == "savepoint, transaction still open" {
				a.Commit()
			}
			for _, handle := range b.Query("select conversation_handle from sb.conversation_endpoints") {
				b.Exec("select sb.end_conversation($1::uuid, cleanup => true)", handle)
			}
			b.Exec("select sb.alter_queue('RightQueue', enabled => true)") // forgets the rollbacks
		}
	}
	wantRows(t, "left over", leftOver(b))
}

// What a rolled-back transaction made cannot be used any more.
func TestRolledBackHandles(t *testing.T) {
	t.Parallel()
	_, a, _ := newTalk(t)
	a.Begin()
	left, right := startTalk(a, "x")
	a.Rollback()
	for _, handle := range []string{left, right} {
		a.ExecError("S8426", "select sb.send($1::uuid, 'Note', 'x')", handle)
		a.ExecError("S8426", "select sb.end_conversation($1::uuid)", handle)
	}
	a.ExecError("S8436", "select sb.set_state($1::uuid, '1')", left)
}

// A first SEND in a savepoint that is rolled back: the next one is the first, and makes the target.
func TestRolledBackFirstSend(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left := beginTalk(a)
	a.Begin()
	a.Exec("savepoint s")
	say(a, left, "never")
	a.Exec("rollback to s")
	wantValue(t, "state", stateOf(a, left), "SO")
	wantValue(t, "target", stateOf(a, peerOf(a, left)), "")
	say(a, left, "zero", "one")
	a.Exec("savepoint s")
	say(a, left, "never")
	a.Exec("rollback to s")
	say(a, left, "two")
	a.Commit()
	wantRows(t, "received", b.Query("select message_sequence_number, sb.body_text(message_body) from sb.receive('RightQueue')"), "0|zero", "1|one", "2|two")
}

// END rolled back to a savepoint with a send after it: the conversation goes on.
func TestRolledBackEnd(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for _, end := range []string{"", ", 3, 'x'", ", cleanup => true"} {
		left, right := startTalk(a, "zero")
		a.Begin()
		a.Exec("savepoint s")
		a.Exec("select sb.end_conversation($1::uuid"+end+")", left)
		a.ExecError("S8426", "select sb.send($1::uuid, 'Note', 'x')", left)
		a.Exec("rollback to s")
		say(a, left, "one")
		a.Commit()
		wantRows(t, "received", take(b, "'RightQueue', for_conversation => '"+right+"'"), "zero", "one")
	}
}

// The search hint is not transactional: whatever readers roll back is found again, complete and in order, even when
// others have taken what came after it meanwhile.
func TestNothingIsLostByRollbacks(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec("select sb.alter_queue('RightQueue', poison_message_handling => false)")
	random := rand.New(rand.NewPCG(7, 7))
	want := map[string][]string{}
	got := map[string][]string{}
	for i := range 20 {
		left := beginTalk(a)
		for j := range 1 + i%5 {
			body := strconv.Itoa(j)
			say(a, left, body)
			want[peerOf(a, left)] = append(want[peerOf(a, left)], body)
		}
	}
	readers := []*pgtest.Session{a, b}
	open := map[*pgtest.Session][]string{} // what each has received and not yet committed
	close := func(s *pgtest.Session) {
		rows, is := open[s]
		if !is {
			return
		}
		delete(open, s)
		if random.IntN(3) > 0 {
			s.Rollback()
			return
		}
		s.Commit()
		for _, row := range rows {
			handle, body, _ := strings.Cut(row, "|")
			got[handle] = append(got[handle], body)
		}
	}
	for range 400 {
		s := readers[random.IntN(2)]
		if _, is := open[s]; !is {
			s.Begin()
			open[s] = nil
		}
		most := []string{"null", "1", "1", "2"}[random.IntN(4)]
		open[s] = append(open[s], s.Query("select conversation_handle, sb.body_text(message_body) from sb.receive('RightQueue', "+most+")")...)
		if random.IntN(2) == 0 {
			close(s)
		}
	}
	for _, s := range readers {
		close(s)
	}
	for {
		rows := a.Query("select conversation_handle, sb.body_text(message_body) from sb.receive('RightQueue', 1)")
		if len(rows) == 0 {
			break
		}
		handle, body, _ := strings.Cut(rows[0], "|")
		got[handle] = append(got[handle], body)
	}
	for handle, bodies := range want {
		if !slices.Equal(got[handle], bodies) {
			t.Errorf("%s: got %q, want %q", handle, got[handle], bodies)
		}
	}
	wantRows(t, "left", a.Query("select 1 from sb.queue_messages"))
}

// Callers under REPEATABLE READ and SERIALIZABLE: where the verb would work on stale rows it raises 40001; never is a
// message received twice, a number used twice, or a key violation shown.
func TestStaleSnapshots(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for _, level := range []string{"repeatable read", "serializable"} {
		for name, c := range map[string]struct{ rival, stale, code string }{
			"SEND after SEND":               {"select sb.send($left, 'Note', 'rival')", "select sb.send($left, 'Note', 'stale')", "40001"},
			"SEND after END":                {"select sb.end_conversation($left)", "select sb.send($left, 'Note', 'stale')", "40001"},
			"SEND after first SEND":         {"select sb.send($fresh, 'Note', 'rival')", "select sb.send($fresh, 'Note', 'stale')", "40001"},
			"batch after first batch":       {"select sb.send_batch($fresh, 'Note', '{a,b}')", "select sb.send_batch($fresh, 'Note', '{c}')", "40001"},
			"RECEIVE after RECEIVE":         {"select * from sb.receive('RightQueue')", "select * from sb.receive('RightQueue')", "40001"},
			"RECEIVE one after RECEIVE one": {"select * from sb.receive('RightQueue', 1)", "select * from sb.receive('RightQueue', 1)", "40001"},
			"RECEIVE by handle":             {"select * from sb.receive('RightQueue')", "select * from sb.receive('RightQueue', for_conversation => $right)", "40001"},
			"RECEIVE after END":             {"select sb.end_conversation($right)", "select * from sb.receive('RightQueue', for_conversation => $right)", "40001"},
			"DialogTimer twice":             {"select * from sb.receive('LeftQueue')", "select * from sb.receive('LeftQueue')", "40001"},
			"END after END":                 {"select sb.end_conversation($right)", "select sb.end_conversation($right)", "40001"},
			"END after MOVE":                {"select sb.move_conversation($left, $group)", "select sb.end_conversation($left)", "40001"},
			"MOVE after MOVE":               {"select sb.move_conversation($left, $group)", "select sb.move_conversation($left, $group)", "40001"},
			"TIMER after TIMER":             {"select sb.begin_conversation_timer($right, '1 h')", "select sb.begin_conversation_timer($right, '2 h')", "40001"},
			"state after state":             {"select sb.set_state($rgroup, '1')", "select sb.set_state($rgroup, '2')", "40001"},
			"one group made by two": {
				"select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $new)",
				"select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $new)", "40001",
			},
			// Nothing stale about these.
			"SEND of the other side":   {"select sb.send($left, 'Note', 'rival')", "select sb.send($right, 'Note', 'fresh')", ""},
			"RECEIVE after an arrival": {"select sb.send($left, 'Note', 'rival')", "select * from sb.receive('RightQueue')", ""},
			"BEGIN DIALOG":             {"select sb.begin_dialog('Left', 'Right', 'Talk')", "select sb.send(sb.begin_dialog('Left', 'Right', 'Talk'), 'Note', 'x')", ""},
		} {
			left, right := startTalk(a, "zero", "one")
			fresh := beginTalk(a)
			timed := beginTalk(a)
			a.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", timed)
			passTime(a, "2 h")
			var group string
			for group == "" || group == groupOf(a, left) {
				group = groupOf(a, beginTalk(a))
			}
			fill := strings.NewReplacer("$left", "'"+left+"'", "$right", "'"+right+"'", "$fresh", "'"+fresh+"'", "$group", "'"+group+"'",
				"$rgroup", "'"+groupOf(a, right)+"'", "$new", "'12345678-1234-1234-1234-123456789012'")
			a.Exec("begin isolation level " + level)
			a.Exec("select count(*) from sb.queue_messages") // takes the snapshot
			b.Exec(fill.Replace(c.rival))
			_, err := a.Conn.Exec(t.Context(), fill.Replace(c.stale))
			wantCode(t, level+": "+name, err, c.code)
			if c.code == "" {
				a.Commit()
			} else {
				a.Rollback()
			}
			wantRows(t, level+": "+name+": numbers used twice", a.Query(`
select conversation_handle, message_sequence_number from sb.queue_messages
 where message_sequence_number >= 0 group by 1, 2 having count(*) > 1`))
			for _, handle := range a.Query("select conversation_handle from sb.conversation_endpoints") {
				a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", handle)
			}
			a.Exec("select sb.alter_queue('RightQueue', enabled => true), sb.alter_queue('LeftQueue', enabled => true), sb.maintain()")
		}
		// A whole conversation under one level, from both sides.
		left, right := startTalk(a, "zero")
		for range 3 {
			a.Exec("begin isolation level " + level)
			wantRows(t, level, take(a, "'RightQueue'"), "zero")
			say(a, right, "back")
			a.Commit()
			b.Exec("begin isolation level " + level)
			wantRows(t, level, take(b, "'LeftQueue'"), "back")
			say(b, left, "zero")
			b.Commit()
		}
		a.Exec("begin isolation level " + level)
		a.Exec("select sb.end_conversation($1::uuid)", right)
		a.Commit()
		b.Exec("begin isolation level " + level)
		wantRows(t, level, take(b, "'LeftQueue'"), "EndDialog")
		b.Exec("select sb.end_conversation($1::uuid)", left)
		b.Commit()
		a.Exec("select sb.maintain()") // what a transaction above read committed cannot see
	}
	wantRows(t, "left over", leftOver(a))
	// Nothing can be changed where nothing may be.
	left, _ := startTalk(a, "zero")
	a.Exec("begin read only")
	a.ExecError("25006", "select sb.send($1::uuid, 'Note', 'x')", left)
	a.Rollback()
	a.Exec("begin read only")
	wantRows(t, "peeking", a.Query("select sb.body_text(message_body) from sb.queue_messages"), "zero")
	a.ExecError("25006", "select * from sb.receive('RightQueue')")
	a.Rollback()
}

// A long conversation received by stale readers and fresh ones in turn: the receive cursor, too, is never behind or
// ahead of what has been committed.
func TestStaleReadersOfALongConversation(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec("select sb.alter_queue('RightQueue', poison_message_handling => false)")
	left, _ := startTalk(a)
	a.Exec("select sb.send_batch($1::uuid, 'Note', array(select convert_to(i::text, 'UTF8') from generate_series(0, 499) as i))", left)
	next := 0
	for round := 0; next < 500; round++ {
		a.Exec("begin isolation level repeatable read")
		a.Exec("select 1 from sb.broker")
		if round%2 == 0 {
			for _, body := range take(b, "'RightQueue', 33") {
				wantValue(t, "fresh", body, strconv.Itoa(next))
				next++
			}
		}
		rows, err := a.Conn.Query(t.Context(), "select sb.body_text(message_body) from sb.receive('RightQueue', 41)")
		if err != nil {
			t.Fatal(err)
		}
		bodies, err := pgx.CollectRows(rows, pgx.RowTo[string])
		switch {
		case pgtest.SQLState(err) == "40001":
			a.Rollback()
		case err != nil:
			t.Fatal(err)
		default:
			for _, body := range bodies {
				wantValue(t, "stale", body, strconv.Itoa(next))
				next++
			}
			a.Commit()
		}
		if t.Failed() || round > 100 {
			t.Fatal("stopped at ", next)
		}
	}
	wantRows(t, "nothing left", take(a, "'RightQueue'"))
}
