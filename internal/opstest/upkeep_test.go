//go:build unix

package opstest

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// What administrators do to tables, as the owner of sb and no superuser, while messages flow: it waits and makes others
// wait, but nobody becomes the victim of a deadlock, and the books are right.
func TestUpkeepUnderLoad(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	l := newLoad(t, 8, db.URL())
	l.run(3, 3)
	l.await(50)
	conn := db.Conn(t)
	for _, table := range pgtest.Strings(t, conn, `
		select c.oid::regclass::text from pg_class as c
		 where c.relkind = 'r' and c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)`) {
		for _, tool := range []string{"vacuum full analyze " + table, "reindex table concurrently " + table} {
			exec(t, conn, tool)
		}
	}
	exec(t, conn, "cluster sb_internal.message using message_conversation_handle_idx")
	exec(t, conn, "cluster sb_internal.send_counter using send_counter_pkey")
	exec(t, conn, "reindex schema concurrently sb_internal")
	exec(t, conn, "vacuum (freeze, analyze)")
	l.await(50)
	l.finish()
	if n := l.deadlocks.Load(); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
	want(t, conn, "indexes that REINDEX left invalid", "select indexrelid::regclass from pg_index where not indisvalid")
}

// Whole applications under the stricter levels: with serialization failures done again, the books are right.
func TestStricterIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			l := newLoad(t, 8, db.URL())
			// What has to be done again counts as a rollback.
			exec(t, db.Conn(t), "select sb.alter_queue('Inbox', poison_message_handling => false)")
			l.options.IsoLevel = level
			l.run(4, 4)
			l.await(100)
			l.finish()
		})
	}
}

// Every verb that TestStaleSnapshots does not know, on a snapshot that a rival's commit has made stale: it does the right
// thing, or says why not, or asks to be done again. (That a queue has got a user meanwhile only its foreign key knows.)
func TestVerbsOnStaleSnapshots(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		for name, c := range map[string]struct {
			rival, verb string
			codes       []string // what may come of it
			retried     string   // what comes of it in a new transaction
		}{
			"multicast after send":           {"select sb.send($left, 'Note', 'x')", "select sb.multicast(array[$left, $other]::uuid[], 'Note', 'y')", []string{"40001"}, ""},
			"group after receive":            {"select * from sb.receive('Inbox')", "select sb.get_conversation_group('Inbox')", []string{"", "40001"}, ""},
			"group after end":                {"select sb.end_conversation($right)", "select sb.get_conversation_group('Inbox')", []string{"", "40001"}, ""},
			"cancel after timer":             {"select sb.begin_conversation_timer($left, '1 h')", "select sb.cancel_conversation_timer($left)", []string{"", "40001"}, ""},
			"cancel after cancel":            {"select sb.cancel_conversation_timer($left)", "select sb.cancel_conversation_timer($left)", []string{"", "40001"}, ""},
			"status after end":               {"select sb.end_conversation($left)", "select sb.get_transmission_status($left)", []string{"", "40001", "S8426"}, "S8426"},
			"get_state after set_state":      {"select sb.set_state($group, '1')", "select sb.get_state($group)", []string{""}, ""},
			"end with error after end":       {"select sb.end_conversation($right)", "select sb.end_conversation($right, 1, 'x')", []string{"40001"}, "S8426"},
			"cleanup after cleanup":          {"select sb.end_conversation($right, cleanup => true)", "select sb.end_conversation($right, cleanup => true)", []string{"40001"}, "S8426"},
			"deliver after deliver":          {"select sb.deliver()", "select sb.deliver()", []string{"", "40001"}, ""},
			"maintain after maintain":        {"select sb.maintain()", "select sb.maintain()", []string{"", "40001"}, ""},
			"restore after restore":          {"select sb.after_restore()", "select sb.after_restore()", []string{"", "40001"}, ""},
			"queue created twice":            {"select sb.create_queue('New')", "select sb.create_queue('New')", []string{"40001", "42710"}, "42710"},
			"queue created if not there":     {"select sb.create_queue('New')", "select sb.create_queue('New', if_not_exists => true)", []string{"", "40001"}, ""},
			"service created twice":          {"select sb.create_service('New', 'Inbox')", "select sb.create_service('New', 'Inbox')", []string{"40001", "42710"}, "42710"},
			"message type created twice":     {"select sb.create_message_type('New')", "select sb.create_message_type('New')", []string{"40001", "42710"}, "42710"},
			"contract created twice":         {"select sb.create_contract('New', '{Note}')", "select sb.create_contract('New', '{Note}')", []string{"40001", "42710"}, "42710"},
			"route created twice":            {"select sb.create_route('New', 'LOCAL')", "select sb.create_route('New', 'LOCAL')", []string{"40001", "42710"}, "42710"},
			"priority created twice":         {"select sb.create_broker_priority('New', priority_level => 7::smallint)", "select sb.create_broker_priority('New', priority_level => 8::smallint)", []string{"40001", "42710"}, "42710"},
			"queue dropped twice":            {"select sb.drop_queue('Spare')", "select sb.drop_queue('Spare')", []string{"40001", "S0208"}, "S0208"},
			"service on a dropped queue":     {"select sb.drop_queue('Spare')", "select sb.create_service('New', 'Spare')", []string{"40001", "S0208"}, "S0208"},
			"queue of a new service dropped": {"select sb.create_service('New', 'Spare')", "select sb.drop_queue('Spare')", []string{"40001", "23503"}, "S3716"},
			"queue altered twice":            {"select sb.alter_queue('Inbox', enabled => false)", "select sb.alter_queue('Inbox', retention => true)", []string{"40001"}, ""},
			"send to a stopped queue":        {"select sb.alter_queue('Inbox', enabled => false)", "select sb.send($left, 'Note', 'x')", []string{"", "40001"}, ""},
			"receive from a stopped queue":   {"select sb.alter_queue('Inbox', enabled => false)", "select * from sb.receive('Inbox')", []string{"", "40001", "S9617"}, "S9617"},
			"dialog on a dropped contract":   {"select sb.drop_contract('Unused')", "select sb.begin_dialog('Source', 'Sink', 'Unused')", []string{"", "40001", "S8425"}, "S8425"},
			"service altered twice":          {"select sb.alter_service('Sink', add_contracts => '{DEFAULT}')", "select sb.alter_service('Sink', add_contracts => '{DEFAULT}')", []string{"", "40001", "42710"}, "*"},
			"option set twice":               {"select sb.set_option('honor_broker_priority', 'on')", "select sb.set_option('honor_broker_priority', 'off')", []string{"40001"}, ""},
			"granted twice":                  {"select sb.grant_receive('Inbox', 'public')", "select sb.grant_receive('Inbox', 'public')", []string{"", "40001"}, ""},
			"broker disabled twice":          {"select sb.disable_broker()", "select sb.disable_broker()", []string{"", "40001"}, ""},
			"all conversations failed":       {"select sb.send($left, 'Note', 'x')", "select sb.error_broker_conversations()", []string{"25001"}, ""},
			"new broker":                     {"select sb.send($left, 'Note', 'x')", "select sb.new_broker()", []string{"25001"}, ""},
			"state table made twice":         {"select sb.create_state_table('public.s', 'x integer')", "select sb.create_state_table('public.s', 'x integer')", []string{"42P07"}, "42P07"},
			"back-off twice":                 {"select sb.back_off_group($group)", "select sb.back_off_group($group)", []string{"", "40001"}, "*"},
		} {
			t.Run(level+"/"+name, func(t *testing.T) {
				t.Parallel()
				staleVerb(t, level, c.rival, c.verb, c.codes, c.retried)
			})
		}
	}
}

func staleVerb(t *testing.T, level, rival, verb string, codes []string, retried string) {
	db := pgtest.New(t)
	a, b := db.Session(t, "stale"), db.Session(t, "rival")
	a.Exec(loadSetUp)
	a.Exec("select sb.create_queue('Spare'), sb.create_contract('Unused', '{Note}')")
	left, other := a.Value("select sb.begin_dialog('Source', 'Sink', 'Talk')"), a.Value("select sb.begin_dialog('Source', 'Sink', 'Talk')")
	a.Exec("select sb.send($1::uuid, 'Note', 'zero'), sb.send($2::uuid, 'Note', 'zero')", left, other)
	a.Exec("select sb.begin_conversation_timer($1::uuid, '1 day')", left)
	right := a.Value("select conversation_handle from sb.conversation_endpoints where conversation_id = $1::uuid and not is_initiator", left)
	group := a.Value("select conversation_group_id from sb.conversation_endpoints where conversation_handle = $1::uuid", right)
	fill := strings.NewReplacer("$left", quote(left), "$right", quote(right), "$other", quote(other), "$group", quote(group))

	a.Exec("begin isolation level " + level)
	a.Exec("select count(*) from sb.queue_messages") // takes the snapshot
	b.Exec(fill.Replace(rival))
	_, err := a.Conn.Exec(t.Context(), fill.Replace(verb))
	if err == nil {
		// Of two serializable transactions one may be told at the end.
		_, err = a.Conn.Exec(t.Context(), "commit")
	} else {
		a.Rollback()
	}
	if code := pgtest.SQLState(err); !slices.Contains(codes, code) || code == "" && err != nil {
		t.Errorf("got %q (%v), want one of %q", code, err, codes)
	}
	if err != nil {
		_, err = a.Conn.Exec(t.Context(), fill.Replace(verb))
		if code := pgtest.SQLState(err); code != retried && retried != "*" {
			t.Errorf("done again: got %q (%v), want %q", code, err, retried)
		}
	}
	if twice := a.Query(`select conversation_handle, message_sequence_number from sb.queue_messages
		where message_sequence_number >= 0 group by 1, 2 having count(*) > 1`); len(twice) > 0 {
		t.Errorf("numbers used twice: %q", twice)
	}
}

func quote(s string) string { return "'" + s + "'" }
