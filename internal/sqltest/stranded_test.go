package sqltest

import (
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// A message is parked while somebody opens the way for it, in both orders of events: whoever comes second moves it
// on, and nothing is left to an activator.
func TestNothingIsStranded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ shut, open string }{
		"queue switched on": {stopRight, startRight},
		"broker enabled":    {"select sb.disable_broker()", "select sb.enable_broker()"},
		"service created": {
			"select sb.drop_service('Right')", "select sb.create_service('Right', 'RightQueue', '{Talk}')",
		},
	} {
		arrived := func(a *pgtest.Session, h string) {
			t.Helper()
			wantRows(t, name+", waiting", waitingIn(a, h))
			wantRows(t, name+", arrived", take(a, "'RightQueue'"), "zero")
		}
		t.Run(name+", the sender has not seen it", func(t *testing.T) {
			t.Parallel()
			_, a, b := newTalk(t)
			a.Exec(c.shut)
			h := beginTalk(a)
			b.Begin()
			b.Exec(c.open)
			sent := a.GoExec("select sb.send($1::uuid, 'Note', 'zero')", h)
			pgtest.WaitBlocked(t, a, b)
			b.Commit()
			if err := wait(t, sent); err != nil {
				t.Fatal(err)
			}
			arrived(a, h)
		})
		t.Run(name+", the sender has not committed", func(t *testing.T) {
			t.Parallel()
			_, a, b := newTalk(t)
			a.Exec(c.shut)
			h := beginTalk(a)
			a.Begin()
			a.Exec("select sb.send($1::uuid, 'Note', 'zero')", h)
			opened := b.GoExec(c.open)
			pgtest.WaitBlocked(t, b, a)
			a.Commit()
			if err := wait(t, opened); err != nil {
				t.Fatal(err)
			}
			arrived(a, h)
		})
	}
}

// Moving a service to another queue gives up, with a coded error, rather than stand in everybody's way.
// Rules: R-072
func TestMoveServiceGivesUp(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	c := db.Session(t, "c")
	a.Exec("select sb.create_queue('OtherQueue')")
	startTalk(a, "zero")
	a.Begin()
	wantRows(t, "held", take(a, "'RightQueue'"), "zero")
	moved := b.GoExec("select sb.alter_service('Right', 'OtherQueue')")
	pgtest.WaitBlocked(t, b, a)
	// Behind the waiting alter_service, others go on within its short waits.
	c.Exec("set statement_timeout = '5s'")
	startTalk(c, "one")
	if code := pgtest.SQLState(wait(t, moved)); code != "S3716" {
		t.Errorf("alter_service: %q", code)
	}
	a.Commit()
	b.Exec("select sb.alter_service('Right', 'OtherQueue')")
	wantRows(t, "moved", take(c, "'OtherQueue'"), "one")
}
