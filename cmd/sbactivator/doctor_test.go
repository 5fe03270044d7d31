package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/demo"
	"github.com/pgsbroker/sbroker/internal/doctor"
	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/internal/privatepg"
	"github.com/pgsbroker/sbroker/testdata"
)

// executeJSON runs a command line with --json and decodes what it prints.
func executeJSON[T any](t *testing.T, code int, args ...string) (v T) {
	t.Helper()
	got, stdout, stderr := execute(t, append(args, "--json")...)
	if got != code || stderr != "" {
		t.Fatalf("%s: exit code %d, want %d; %s%s", strings.Join(args, " "), got, code, stdout, stderr)
	}
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v:\n%s", err, stdout)
	}
	return v
}

// patient is a database to examine. The server of the tests has fsync off, which is a test of its own.
type patient struct {
	*pgtest.DB
	owner *pgx.Conn
	// A role that an activator is, or seems to be, logged in as.
	activator string
	sessions  []*pgtest.Session
}

func newPatient(t *testing.T) *patient {
	db := pgtest.New(t)
	return &patient{DB: db, owner: db.Conn(t), activator: db.CreateRole(t, "activator")}
}

func (p *patient) exec(t *testing.T, sql string) {
	t.Helper()
	execAll(t, p.owner, sql)
}

// execAll runs statements, each in a transaction of its own.
func execAll(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if err := conn.PgConn().Exec(context.Background(), sql).Close(); err != nil {
		t.Fatalf("%v:\n%s", err, sql)
	}
}

func (p *patient) super(t *testing.T, sql string) {
	t.Helper()
	execAll(t, p.Superuser(t), sql)
}

// connectActivator makes a session that looks like an activator's.
func (p *patient) connectActivator(t *testing.T, role string) {
	t.Helper()
	p.sessions = append(p.sessions, p.SessionAs(t, "sbactivator somewhere/1", role))
}

// activated makes a queue with an activation procedure that runs as role, and a connected activator that may be it.
func (p *patient) activated(t *testing.T, role string) {
	t.Helper()
	p.super(t, fmt.Sprintf("grant %s to %s; create schema app authorization %s", role, p.activator, p.Owner))
	if role != p.Owner {
		p.super(t, fmt.Sprintf("grant %s to %s", role, p.Owner))
	}
	p.exec(t, fmt.Sprintf(`
grant usage on schema app to public;
create function app.work() returns void language sql as '';
select sb.create_queue('Work', activation_procedure => 'app.work', execute_as => '%s')`, role))
	p.connectActivator(t, p.activator)
}

// ofServer is the checks of the whole server, which is not the test's own.
const ofServer = "durability,synchronous-commit,replication-slot"

func (p *patient) examine(t *testing.T, url string, args ...string) doctorReport {
	t.Helper()
	args = append([]string{"doctor", "--json", "--database-url", url, "--skip", ofServer}, args...)
	code, stdout, stderr := execute(t, args...)
	report := doctorReport{Report: &doctor.Report{}}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	if want := min(1, len(report.Findings)); code != want || stderr != "" {
		t.Fatalf("exit code %d with %d findings; %s", code, len(report.Findings), stderr)
	}
	return report
}

func checksOf(report doctorReport) []string {
	var names []string
	for _, f := range report.Findings {
		names = append(names, f.Check)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

const (
	twoServices = `
select sb.create_queue('Q'), sb.create_service('client', 'Q');
select sb.create_queue('S'), sb.create_service('server', 'S', '{DEFAULT}');`
	dialog = `
do $$
declare
  h uuid := sb.begin_dialog('client', 'server');
begin
  perform sb.send(h, 'DEFAULT', 'hello');
end $$;`
	receiveAndRollBack = `begin; select from sb.receive('S'); rollback;`
)

// impatient makes what has just happened old.
var impatient = []string{"--patience", "1us"}

// provocations make a database sick, each with the one illness that check finds, and also at most.
var provocations = []struct {
	check string
	what  string // part of the finding
	sick  func(t *testing.T, p *patient)
	args  []string
	// handles: the configuration has a handler for this queue.
	handles string
	also    []string
	// mends: what the finding offers makes the database well.
	mends bool
}{
	{
		check: "schema-older", what: "this program needs version",
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "delete from sb_internal.meta where version = (select max(version) from sb_internal.meta)")
		},
	},
	{
		check: "schema-newer", what: "has version 9999 of sb",
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "insert into sb_internal.meta (version, name) values (9999, 'future')")
		},
	},
	{
		check: "broker-disabled", what: "disabled", mends: true,
		sick: func(t *testing.T, p *patient) { p.exec(t, "select sb.disable_broker()") },
	},
	{
		check: "read-only", what: "are read-only", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "alter database "+p.Name+" set default_transaction_read_only = on")
		},
	},
	{
		check: "isolation", what: "are serializable", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "alter database "+p.Name+" set default_transaction_isolation = 'serializable'")
		},
	},
	{
		check: "connections", what: "allow for 30000 readers", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.activated(t, p.Owner)
			p.exec(t, "select sb.alter_queue('Work', max_queue_readers => 30000)")
		},
	},
	{
		check: "queue-off", what: `Queue "S" is stopped. 0 messages wait in it, and 1 in the transmission queue for it.`, mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+"select sb.alter_queue('S', enabled => false);"+dialog)
		},
	},
	{
		check: "queue-off", what: `Queue "a\` + "\n" + `'b" is stopped.`, mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, `select sb.create_queue(E'a\\\n''b'); select sb.alter_queue(E'a\\\n''b', enabled => false)`)
		},
	},
	{
		check: "queue-poison", what: "5 transactions in a row", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+dialog)
			for range 5 {
				p.exec(t, receiveAndRollBack)
			}
		},
	},
	{
		// A crash forgets the count, not the reason.
		check: "queue-poison", what: "too many transactions in a row (how many is forgotten) received from it and rolled back. 1 message waits in it", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+dialog)
			for range 5 {
				p.exec(t, receiveAndRollBack)
			}
			p.exec(t, "select sb.maintain(); select sb_internal._poison_reset(q.queue_id) from sb.service_queues as q")
		},
	},
	{
		check: "queue-rollbacks", what: "the last 3 receives",
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+dialog)
			for range 3 {
				p.exec(t, receiveAndRollBack)
			}
		},
	},
	{
		check: "groups-blocked", what: "1 conversation group is held back",
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+dialog+`
select sb.back_off_group(m.conversation_group_id) from sb.queue_messages as m;
update sb_internal.group_backoff set not_before = now() + interval '1 hour'`)
		},
	},
	{
		check: "activator-none", what: `"Work"`,
		sick: func(t *testing.T, p *patient) {
			p.activated(t, p.Owner)
			if err := p.sessions[0].Conn.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			pgtest.Eventually(t, 10*time.Second, func() bool {
				return pgtest.Strings(t, p.owner, "select count(*) from pg_stat_activity where application_name = 'sbactivator somewhere/1' and datname = current_database()")[0] == "0"
			})
		},
	},
	{
		check: "unread", what: "it has no activation procedure", args: impatient,
		sick: func(t *testing.T, p *patient) { p.exec(t, twoServices+dialog) },
	},
	{
		check: "unread", what: "no activator with this configuration runs its handler", also: []string{"activator-none"},
		args: impatient, handles: "S",
		sick: func(t *testing.T, p *patient) { p.exec(t, twoServices+dialog) },
	},
	{
		check: "handler-queue", what: `a handler for queue "work", which does not exist; the nearest is "Work"`,
		handles: "work",
		sick:    func(t *testing.T, p *patient) { p.activated(t, p.Owner) },
	},
	{
		// What an activator leaves that has called for ten minutes a procedure that fails before it receives.
		check: "not-received", what: `its activation procedure app.work fails before it receives them, or does not receive`,
		sick: func(t *testing.T, p *patient) {
			p.activated(t, p.Owner)
			p.exec(t, twoServices+"select sb.alter_service('server', 'Work');"+dialog+`
update sb_internal.message set message_enqueue_time = now() - interval '10 minutes';
select from sb.service_queues as q cross join lateral sb.probe_queue(q.queue_id) where q.name = 'Work';
update sb_internal.queue_monitor as m set state = 'NOTIFIED', last_activated_time = now() - interval '10 minutes'
  from sb.service_queues as q where q.queue_id = m.queue_id and q.name = 'Work'`)
		},
	},
	{
		// Alone of its kind: roles belong to the whole cluster, and with rights for PUBLIC another test would see this one too.
		check: "reads-all-data", what: `has rights in sb, and is a member of pg_read_all_data and pg_write_all_data.`, mends: true,
		sick: func(t *testing.T, p *patient) {
			role := p.CreateRole(t, "backup")
			p.super(t, "grant pg_read_all_data, pg_write_all_data to "+role)
			p.exec(t, "select sb.create_queue('Q'), sb.grant_receive('Q', '"+role+"')")
		},
	},
	{
		check: "state-table-owner", what: `State table app.state was created with drop_on_end and belongs to role "`, mends: true,
		sick: func(t *testing.T, p *patient) {
			stranger := p.CreateRole(t, "stranger")
			p.super(t, "create schema app authorization "+p.Owner+"; grant usage, create on schema app to "+stranger+"; grant "+stranger+" to "+p.Owner)
			p.exec(t, `
select sb.create_state_table('app.state', 'n integer');
select sb.create_state_table('app.mine', 'n integer');
alter table app.state owner to `+stranger)
		},
	},
	{
		check: "unread", what: "its activation is switched off", args: impatient,
		sick: func(t *testing.T, p *patient) {
			p.activated(t, p.Owner)
			p.exec(t, twoServices+"select sb.alter_service('server', 'Work'), sb.alter_queue('Work', activation_enabled => false);"+dialog)
		},
	},
	{
		check: "retention", what: `Queue "S" has retention`,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+"select sb.alter_queue('S', retention => true);"+dialog+`
select from sb.receive('S');
update sb_internal.retained_message set message_enqueue_time = now() - interval '2 days'`)
		},
	},
	{
		check: "procedure-missing", what: "app.work", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.activated(t, p.Owner)
			p.exec(t, "drop function app.work()")
		},
	},
	{
		check: "procedure-arguments", what: "takes arguments", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.activated(t, p.Owner)
			p.exec(t, "drop function app.work(); create function app.work(n integer default 1) returns void language sql as ''")
		},
	},
	{
		check: "procedure-rights", what: "may not execute it", mends: true,
		sick: func(t *testing.T, p *patient) {
			reader := p.CreateRole(t, "reader")
			p.activated(t, reader)
			p.exec(t, "select sb.grant_receive('Work', '"+reader+"'); revoke usage on schema app from public; revoke execute on function app.work() from public")
		},
	},
	{
		check: "execute-as-missing", what: "which does not exist",
		sick: func(t *testing.T, p *patient) {
			p.activated(t, p.Owner)
			p.exec(t, "update sb_internal.queue set execute_as = 'nobody here' where name = 'Work'")
		},
	},
	{
		check: "execute-as-superuser", what: "as the superuser",
		sick: func(t *testing.T, p *patient) {
			reader := p.CreateRole(t, "reader")
			p.activated(t, reader)
			p.super(t, "alter role "+reader+" superuser")
		},
	},
	{
		check: "execute-as-stranger", what: "no right in sb at all", mends: true,
		sick: func(t *testing.T, p *patient) { p.activated(t, p.CreateRole(t, "reader")) },
	},
	{
		check: "execute-as-receive", what: "may not receive from it", mends: true,
		sick: func(t *testing.T, p *patient) {
			reader := p.CreateRole(t, "reader")
			p.activated(t, reader)
			p.exec(t, twoServices+"select sb.grant_receive('Q', '"+reader+"')")
		},
	},
	{
		check: "activator-membership", what: "the activator's role", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.activated(t, p.Owner)
			p.super(t, "revoke "+p.Owner+" from "+p.activator)
		},
	},
	{
		check: "activator-superuser", what: "logged in as the superuser",
		sick: func(t *testing.T, p *patient) {
			p.activated(t, p.Owner)
			p.connectActivator(t, "")
		},
	},
	{
		check: "owner-missing", what: `Queue "S" belongs to role "gone"`, mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+"update sb_internal.queue set owner = 'gone' where name = 'S'")
		},
	},
	{
		check: "validator-missing", what: "public.check_it", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.super(t, "create function public.check_it(jsonb) returns boolean language sql as 'select true'")
			p.exec(t, "select sb.create_message_type('Checked', 'VALID_JSON', validator => 'public.check_it(jsonb)')")
			p.super(t, "drop function public.check_it(jsonb)")
		},
	},
	{
		check: "contract-not-accepted", what: `on contract "DEFAULT", but it accepts no contract at all`, mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+"select sb.alter_service('server', drop_contracts => '{DEFAULT}');"+dialog)
		},
	},
	{
		check: "route-expired", what: "has expired", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "select sb.create_route('r', 'remote://elsewhere', service_name => 's', lifetime => '1 microsecond')")
		},
	},
	{
		check: "route-remote", what: "leads to remote://elsewhere", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "select sb.create_route('r', 'remote://elsewhere', service_name => 's')")
		},
	},
	{
		check: "priority-unmatched", what: `"nowhere"`, mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "select sb.create_broker_priority('p', remote_service_name => 'nowhere', priority_level => 7), sb.set_option('honor_broker_priority', 'on')")
		},
	},
	{
		check: "priority-not-honored", what: "There is 1 broker priority,", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "select sb.create_broker_priority('p', priority_level => 7)")
		},
	},
	{
		check: "transmission", what: `The destination service "server" does not exist.`, args: impatient,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "select sb.create_queue('Q'), sb.create_service('client', 'Q');"+dialog)
		},
	},
	{
		check: "transmission", what: `is disabled.`, args: impatient, also: []string{"queue-off"}, mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+"select sb.alter_queue('S', enabled => false);"+dialog)
		},
	},
	{
		check: "transmission", what: "Held: an Error ended the conversation", mends: true, args: impatient, also: []string{"queue-off", "endpoints-left"},
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+dialog+`
select sb.alter_queue('Q', enabled => false);
do $$
declare
  h uuid := conversation_handle from sb.receive('S');
begin
  perform sb.send(h, 'DEFAULT', 'answer');
end $$;
update sb_internal.endpoint set state = 'ER' where not is_initiator`)
		},
	},
	{
		check: "timer-overdue", what: `nobody receives from queue "Q"`, args: impatient,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+`
do $$ begin perform sb.begin_conversation_timer(sb.begin_dialog('client', 'server'), '1 microsecond'); end $$`)
		},
	},
	{
		check: "endpoints-left", what: `1 conversation of service "client" with "server" is over`, mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+dialog+`
do $$ begin perform sb.end_conversation(r.conversation_handle) from sb.receive('S') as r; end $$;
select from sb.receive('Q')`)
		},
	},
	{
		check: "initiator-gone", what: `1 conversation of service "server" with "client" has lost the side that began it.`, mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices+dialog+`
select sb.end_conversation(e.conversation_handle, cleanup => true) from sb.conversation_endpoints as e where e.is_initiator`)
		},
	},
	{
		check: "endpoints-many", what: `most of the first 10000 are of service "client"`,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, twoServices)
			conn := p.Conn(t)
			execAll(t, conn, `
insert into sb_internal.endpoint (conversation_handle, peer_handle, conversation_group_id, service_id, service_contract_id,
  priority, is_initiator, state, far_service)
select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), s.service_id, 6, 5, true, 'CO', 'server'
  from sb.services as s, generate_series(1, 100000)
 where s.name = 'client'`)
			// The server's statistics are written when the session ends.
			if err := conn.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			pgtest.Eventually(t, 20*time.Second, func() bool {
				return pgtest.Strings(t, p.owner, "select pg_stat_get_live_tuples('sb_internal.endpoint'::regclass) >= 100000")[0] == "t"
			})
		},
	},
	{
		check: "long-transaction", what: `(application "report")`, args: impatient,
		sick: func(t *testing.T, p *patient) {
			s := p.Session(t, "report")
			s.Exec("begin isolation level repeatable read")
			s.Exec("select count(*) from sb.services")
		},
	},
	{
		check: "prepared-transaction", what: `"it's"`, args: impatient, mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "begin; select pg_current_xact_id(); prepare transaction 'it''s'")
		},
	},
	{
		check: "autovacuum-off", what: "sb_internal.message", mends: true,
		sick: func(t *testing.T, p *patient) {
			p.exec(t, "alter table sb_internal.message set (autovacuum_enabled = off)")
		},
	},
	{
		check: "vacuum-behind", what: "sb_internal.group_backoff has 60000 dead rows", args: impatient, also: []string{"autovacuum-off"}, mends: true,
		sick: func(t *testing.T, p *patient) {
			conn := p.Conn(t)
			execAll(t, conn, "alter table sb_internal.group_backoff set (autovacuum_enabled = off)")
			execAll(t, conn, "insert into sb_internal.group_backoff select gen_random_uuid(), now(), 1 from generate_series(1, 60000)")
			execAll(t, conn, "delete from sb_internal.group_backoff")
			if err := conn.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			pgtest.Eventually(t, 20*time.Second, func() bool {
				return pgtest.Strings(t, p.owner, "select pg_stat_get_dead_tuples('sb_internal.group_backoff'::regclass) >= 60000")[0] == "t"
			})
		},
	},
}

// elsewhere are the checks that have tests of their own.
var elsewhere = append(strings.Split(ofServer, ","), "clock")

// Every check finds what it is for, and nothing else does; where SQL is offered that mends it, it does.
func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	missing := slices.DeleteFunc(doctor.Names(), func(name string) bool { return slices.Contains(elsewhere, name) })
	for _, test := range provocations {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == test.check })
		t.Run(test.check, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			test.sick(t, p)
			args := slices.Clone(test.args)
			if test.handles != "" {
				file := filepath.Join(t.TempDir(), "sbactivator.yaml")
				text := fmt.Sprintf("handlers: [{ queue: %s, type: http, url: 'http://127.0.0.1:1/' }]", test.handles)
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config", file)
			}
			report := p.examine(t, p.URL(), args...)
			want := append([]string{test.check}, test.also...)
			slices.Sort(want)
			if got := checksOf(report); !slices.Equal(got, want) {
				t.Fatalf("found %q, want %q: %+v", got, want, report.Findings)
			}
			at := slices.IndexFunc(report.Findings, func(f doctor.Finding) bool { return f.Check == test.check })
			found := report.Findings[at]
			if !strings.Contains(found.What, test.what) || found.Mend == "" || found.Why != doctor.Explain(test.check) {
				t.Errorf("%+v", found)
			}
			if !test.mends {
				return
			}
			var all []string
			for _, f := range report.Findings {
				all = append(all, f.Mend)
			}
			for _, sql := range slices.Compact(all) {
				for line := range strings.Lines(sql) {
					// Statements such as VACUUM stand alone; several of one line do not mind being together.
					runner := p.owner
					if found.MendBy != "" || strings.HasPrefix(line, "grant ") {
						runner = p.Superuser(t)
					}
					execAll(t, runner, line)
				}
			}
			// What comes to light only then is not of this illness.
			others := slices.DeleteFunc(doctor.Names(), func(name string) bool { return name == test.check })
			if left := p.examine(t, p.URL(), append(args, "--skip", strings.Join(others, ","))...); len(left.Findings) > 0 {
				t.Errorf("not mended: %+v", left.Findings)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("nothing provokes %q", missing)
	}
}

// What holds for a whole server needs one of its own.
func TestDoctorServer(t *testing.T) {
	t.Parallel()
	pgtest.Empty(t) // skips where there is no server to start
	server, err := privatepg.Start(t.Context(), privatepg.Options{Settings: map[string]string{
		"synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if code, _, stderr := execute(t, "migrate", "up", "--database-url", server.URL()); code != exitDone {
		t.Fatal(stderr)
	}
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	execAll(t, conn, "select pg_create_physical_replication_slot('forgotten', true)")
	code, stdout, stderr := execute(t, "doctor", "--database-url", server.URL())
	for _, want := range []string{
		"error: durability\n  fsync is off.\n", "  full_page_writes is off.\n", "advice: synchronous-commit\n",
		"error: autovacuum-off\n  autovacuum is off.\n",
		"warning: replication-slot\n  Replication slot \"forgotten\" is used by nobody and keeps write-ahead log.\n",
		"    select pg_drop_replication_slot('forgotten');\n", ": 5 findings, ",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != exitFailed || stderr != "" || strings.Contains(stdout, "\x1b") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if t.Failed() {
		t.Log(stdout)
	}
}

// The clock of the client is not the test's to set, but what the doctor takes for it is.
func TestDoctorClock(t *testing.T) {
	t.Parallel()
	conn := pgtest.New(t).Conn(t)
	for ahead, want := range map[time.Duration]int{0: 0, time.Minute: 1, -time.Hour: 1} {
		err := inSnapshot(t.Context(), conn, func(tx pgx.Tx) error {
			report, err := doctor.Run(t.Context(), tx, true, doctor.Options{
				SchemaVersion: 0, Now: func() time.Time { return time.Now().Add(ahead) },
			})
			if err != nil {
				return err
			}
			found := slices.DeleteFunc(report.Findings, func(f doctor.Finding) bool { return f.Check != "clock" })
			if len(found) != want {
				t.Errorf("%v: %+v", ahead, found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// After the whole demonstration, with its activator running, there is nothing to say.
func TestDoctorHealthy(t *testing.T) {
	t.Parallel()
	pgtest.Empty(t) // skips where there is no server to start
	server, err := privatepg.Start(t.Context(), privatepg.Options{Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	in, err := demo.ParseInput(testdata.ExpenseReports)
	if err != nil {
		t.Fatal(err)
	}
	site := demo.NewSite(server.URL(), "secret", "sbroker")
	if err := site.Create(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := demo.Run(t.Context(), site, in, io.Discard, activator.Config{}); err != nil {
		t.Fatal(err)
	}
	handlers, err := site.NewActivator(activator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- handlers.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	conn, err := pgx.Connect(t.Context(), server.DSN(site.Database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	pgtest.Eventually(t, 20*time.Second, func() bool {
		return pgtest.Strings(t, conn, "select count(*) > 0 from pg_stat_activity where application_name like 'sbactivator %'")[0] == "t"
	})
	for _, role := range []string{site.Activator, site.Owner} {
		code, stdout, stderr := execute(t, "doctor", "--database-url", site.URL(role))
		want := fmt.Sprintf(": nothing wrong, %d checks.\n", len(doctor.Names()))
		if code != exitDone || stderr != "" || !strings.HasSuffix(stdout, want) || strings.Count(stdout, "\n") != 1 {
			t.Errorf("as %s: exit code %d\n%s%s", role, code, stdout, stderr)
		}
	}
}

// A role with a right and no more learns about what it may see, and that this is not all.
func TestDoctorPlainRole(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	role := p.CreateRole(t, "app")
	p.exec(t, twoServices+`
select sb.alter_queue('S', enabled => false), sb.alter_queue('Q', enabled => false);
select sb.grant_receive('S', '`+role+`')`)
	report := p.examine(t, p.URLAs(role))
	if got := checksOf(report); !slices.Equal(got, []string{"queue-off"}) || len(report.Findings) != 1 {
		t.Errorf("found %+v", report.Findings)
	}
	if report.Findings[0].MendBy != "its owner, or an admin of sb" {
		t.Errorf("by %q", report.Findings[0].MendBy)
	}
	if _, stdout, _ := execute(t, "doctor", "--database-url", p.URLAs(role), "--skip", ofServer); !strings.Contains(stdout,
		"    -- to be run by its owner, or an admin of sb\n    select sb.alter_queue('S', enabled => true);\n") {
		t.Error(stdout)
	}
	if report.Database.IsAdmin || !slices.Contains(report.NotMade, "initiator-gone") {
		t.Errorf("%+v", report)
	}
	code, stdout, _ := execute(t, "doctor", "--database-url", p.URLAs(role), "--skip", ofServer+",queue-off")
	if code != exitDone || !strings.Contains(stdout, "no admin of sb") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("exit code %d, %s", code, stdout)
	}
}

// Every check is documented.
func TestDoctorDocumented(t *testing.T) {
	t.Parallel()
	page := readFile(t, "docs/operations.md")
	list := executeJSON[checkList](t, exitDone, "doctor", "--list")
	if len(list.Checks) != len(doctor.Names()) {
		t.Errorf("%d checks are listed", len(list.Checks))
	}
	for _, c := range list.Checks {
		if !strings.Contains(page, "`"+c.Check+"`") || c.Why == "" {
			t.Errorf("docs/operations.md does not name check %s", c.Check)
		}
	}
	if _, stdout, _ := execute(t, "doctor", "--list"); !strings.Contains(stdout, "unread\n  Nobody receives") {
		t.Error(stdout)
	}
}
