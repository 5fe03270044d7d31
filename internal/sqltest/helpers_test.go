package sqltest

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// talkSetUp is the smallest application in which both sides may say everything: services Left and Right, a queue
// each, and contract Talk with message type Note.
const talkSetUp = `
select sb.create_message_type('Note');
select sb.create_contract('Talk', sent_by_any => '{Note}');
select sb.create_queue('LeftQueue');
select sb.create_queue('RightQueue');
select sb.create_service('Left', 'LeftQueue', '{Talk}');
select sb.create_service('Right', 'RightQueue', '{Talk}');`

// newTalk returns a database with the application of talkSetUp, and two sessions of the owner.
func newTalk(t *testing.T) (db *pgtest.DB, a, b *pgtest.Session) {
	t.Helper()
	db = pgtest.New(t)
	a, b = db.Session(t, "a"), db.Session(t, "b")
	a.Exec(talkSetUp)
	return db, a, b
}

// beginTalk begins a dialog from Left to Right and returns the initiator's handle.
func beginTalk(s *pgtest.Session) string {
	return s.Value("select sb.begin_dialog('Left', 'Right', 'Talk')")
}

// say sends each body as a Note of its own.
func say(s *pgtest.Session, handle string, bodies ...string) {
	for _, body := range bodies {
		s.Exec("select sb.send($1::uuid, 'Note', $2::text)", handle, body)
	}
}

// startTalk begins a dialog, says the bodies, and returns the handles of both sides.
func startTalk(s *pgtest.Session, bodies ...string) (left, right string) {
	left = beginTalk(s)
	say(s, left, bodies...)
	return left, peerOf(s, left)
}

// peerOf returns the handle of the other side, also before that side exists.
func peerOf(s *pgtest.Session, handle string) string {
	return s.Value("select peer_handle from sb_internal.endpoint where conversation_handle = $1::uuid", handle)
}

// groupOf returns the conversation group of a side.
func groupOf(s *pgtest.Session, handle string) string {
	return s.Value("select conversation_group_id from sb_internal.endpoint where conversation_handle = $1::uuid", handle)
}

// stateOf returns the state of a side as the view shows it, or "" when the side is gone.
func stateOf(s *pgtest.Session, handle string) string {
	return strings.Join(s.Query("select state from sb.conversation_endpoints where conversation_handle = $1::uuid", handle), ",")
}

// take receives with the arguments written as SQL, and returns each message as its body, or its type and the code of
// the Error.
func take(s *pgtest.Session, arguments string) []string {
	return s.Query(`
select case m.message_type_id
         when 1 then 'Error ' || sb.error_code(m.message_body)
         when 2 then 'EndDialog'
         when 5 then 'DialogTimer'
         else coalesce(sb.body_text(m.message_body), '')
       end
  from sb.receive(` + arguments + `) as m`)
}

// waitingIn returns what sits in the transmission queue for the conversation, in order.
func waitingIn(s *pgtest.Session, handle string) []string {
	return s.Query(`
select case when t.is_conversation_error then 'Error ' || sb.error_code(t.message_body)
            when t.is_end_of_dialog then 'EndDialog'
            else coalesce(sb.body_text(t.message_body), '') end
  from sb.transmission_queue as t
 where t.conversation_handle = $1::uuid
 order by t.message_sequence_number`, handle)
}

// passTime lets the interval go by for every timer, lifetime and message, as if the clock had moved on.
func passTime(s *pgtest.Session, interval string) {
	s.Exec("update sb_internal.message set message_enqueue_time = message_enqueue_time - $1::text::interval", interval)
	s.Exec("update sb_internal.due set due_at = due_at - $1::text::interval", interval)
	s.Exec("update sb_internal.endpoint set lifetime = lifetime - $1::text::interval where lifetime is not null", interval)
}

// leftOver lists the tables of conversations that are not empty.
func leftOver(s *pgtest.Session) []string {
	return s.Query(`
select t.name || ' ' || t.rows
  from (
    select 'endpoint' as name, count(*) as rows from sb_internal.endpoint
    union all select 'group', count(*) from sb.conversation_group
    union all select 'message', count(*) from sb_internal.message
    union all select 'retained_message', count(*) from sb_internal.retained_message
    union all select 'transmission', count(*) from sb_internal.transmission
    union all select 'due', count(*) from sb_internal.due
    union all select 'send_counter', count(*) from sb_internal.send_counter
    union all select 'receive_cursor', count(*) from sb_internal.receive_cursor
    union all select 'state', count(*) from sb_internal.state
    union all select 'group_backoff', count(*) from sb_internal.group_backoff) as t
 where t.rows > 0
 order by t.name`)
}

// wantValue compares one value.
func wantValue(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// wait returns what a [pgtest.Session.Go] delivers, and ends the test when nothing has come within a minute, which even on
// a busy machine means never.
func wait(t *testing.T, result <-chan error) error {
	t.Helper()
	return pgtest.WaitWithin(t, time.Minute, result)
}

// mustNotWait runs a statement in its own goroutine and ends the test when it has not come back soon: something blocks
// it that must not.
func mustNotWait(t *testing.T, s *pgtest.Session, sql string, args ...any) {
	t.Helper()
	s.Exec("set lock_timeout = '5s'")
	if err := wait(t, s.GoExec(sql, args...)); err != nil {
		t.Fatalf("%s: %s: %v", s.Name, sql, err)
	}
	s.Exec("reset lock_timeout")
}

// wantCode ends the test unless the error carries the SQLSTATE ("" for success).
func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	if got := pgtest.SQLState(err); got != code || code == "" && err != nil {
		t.Fatalf("%s: got %q (%v), want %q", what, got, err, code)
	}
}

// elapsed runs fn and returns how long it took.
func elapsed(fn func()) time.Duration {
	start := time.Now()
	fn()
	return time.Since(start)
}

// lose opens a connection, lets fn work on it and cuts the line without a word; it returns once the server has noticed.
func lose(t *testing.T, db *pgtest.DB, watcher *pgtest.Session, fn func(conn *pgx.Conn)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	fn(conn)
	if err := conn.PgConn().Conn().Close(); err != nil {
		t.Fatal(err)
	}
	pid := conn.PgConn().PID()
	pgtest.Eventually(t, 10*time.Second, func() bool {
		return watcher.Value("select count(*) from pg_stat_activity where pid = $1::integer", pid) == "0"
	})
}

// killed opens a connection, lets fn work on it and has the backend terminated; it returns once it is gone.
func killed(t *testing.T, db *pgtest.DB, watcher *pgtest.Session, fn func(conn *pgx.Conn)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	fn(conn)
	pid := conn.PgConn().PID()
	watcher.Exec("select pg_terminate_backend($1::integer, 10000)", pid)
	if _, err := conn.Exec(t.Context(), "commit"); err == nil {
		t.Fatal("a terminated session committed")
	}
	conn.Close(t.Context())
}
