package sqltest

import (
	"testing"

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
