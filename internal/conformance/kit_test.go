package conformance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newTalk returns a database with services Left and Right, a queue each, which may send each other Notes on contract
// Talk, and two sessions of the owner.
func newTalk(t *testing.T) (db *pgtest.DB, a, b *pgtest.Session) {
	t.Helper()
	db = pgtest.New(t)
	a, b = db.Session(t, "a"), db.Session(t, "b")
	a.Exec(`
select sb.create_message_type('Note');
select sb.create_contract('Talk', sent_by_any => '{Note}');
select sb.create_queue('LeftQueue');
select sb.create_queue('RightQueue');
select sb.create_service('Left', 'LeftQueue', '{Talk}');
select sb.create_service('Right', 'RightQueue', '{Talk}')`)
	return db, a, b
}

const (
	stopRight  = "select sb.alter_queue('RightQueue', enabled => false)"
	startRight = "select sb.alter_queue('RightQueue', enabled => true)"
)

// begin begins a dialog from Left to Right.
func begin(s *pgtest.Session) (left string) {
	return s.Value("select sb.begin_dialog('Left', 'Right', 'Talk')")
}

// say sends each body as a Note of its own.
func say(s *pgtest.Session, handle string, bodies ...string) {
	for _, body := range bodies {
		s.Exec("select sb.send($1::uuid, 'Note', $2::text)", handle, body)
	}
}

// start begins a dialog, says the bodies, at least one, and returns the handles of both sides,
// that of the other side "" while it does not exist.
func start(s *pgtest.Session, bodies ...string) (left, right string) {
	left = begin(s)
	say(s, left, bodies...)
	return left, s.Value(`
select coalesce((
  select e.conversation_handle::text from sb.conversation_endpoints as e
   where e.conversation_id = $1::uuid and not e.is_initiator), '')`, left)
}

// end ends conversations.
func end(s *pgtest.Session, handles ...string) {
	for _, handle := range handles {
		s.Exec("select sb.end_conversation($1::uuid)", handle)
	}
}

// stateOf returns the state of a side, "" when the side is gone.
func stateOf(s *pgtest.Session, handle string) string {
	return s.Value("select coalesce((select e.state from sb.conversation_endpoints as e where e.conversation_handle = $1::uuid), '')", handle)
}

// groupOf returns the conversation group of a side.
func groupOf(s *pgtest.Session, handle string) string {
	return s.Value("select e.conversation_group_id from sb.conversation_endpoints as e where e.conversation_handle = $1::uuid", handle)
}

// take receives with the arguments written as SQL, and returns each message as its body, or its system type and the
// code of the Error.
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

// rollBack receives from RightQueue and rolls back.
func rollBack(s *pgtest.Session, times int) {
	for range times {
		s.Begin()
		s.Exec("select * from sb.receive('RightQueue')")
		s.Rollback()
	}
}

// want compares rows.
func want(t *testing.T, what string, got []string, rows ...string) {
	t.Helper()
	if diff := cmp.Diff(rows, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantQuery compares what a query returns.
func wantQuery(t *testing.T, s *pgtest.Session, what, sql string, rows ...string) {
	t.Helper()
	want(t, what, s.Query(sql), rows...)
}

// wait returns what a [pgtest.Session.Go] delivers, and ends the test when nothing has come within a minute.
func wait(t *testing.T, result <-chan error) error {
	t.Helper()
	return pgtest.WaitWithin(t, time.Minute, result)
}
