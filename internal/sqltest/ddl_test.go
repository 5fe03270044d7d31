package sqltest

import (
	"context"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// setUp is a small application: service Orders (queue OrderQueue) begins dialogs on contract Buy with service
// Warehouse (queue WarehouseQueue).
const setUp = `
select sb.create_message_type('Request');
select sb.create_message_type('Reply', 'WELL_FORMED_XML');
select sb.create_contract('Buy', sent_by_initiator => '{Request}', sent_by_target => '{Reply}');
select sb.create_queue('OrderQueue');
select sb.create_queue('WarehouseQueue');
select sb.create_service('Orders', 'OrderQueue');
select sb.create_service('Warehouse', 'WarehouseQueue', '{Buy}');`

// newApplication returns a database with the application of setUp, and a session of the owner.
func newApplication(t *testing.T) (*pgtest.DB, *pgtest.Session) {
	t.Helper()
	db := pgtest.New(t)
	owner := db.Session(t, "owner")
	owner.Exec(setUp)
	return db, owner
}

// beginAndSend begins a dialog from Orders to Warehouse, sends the bodies on it and returns the handle.
func beginAndSend(s *pgtest.Session, bodies ...string) string {
	handle := s.Value("select sb.begin_dialog('Orders', 'Warehouse', 'Buy')")
	for _, body := range bodies {
		s.Exec("select sb.send($1::uuid, 'Request', $2::text)", handle, body)
	}
	return handle
}

// received receives all there is in one group of the queue: type and body of each message.
func received(s *pgtest.Session, queue string) []string {
	return s.Query(`
select regexp_replace(m.message_type_name, '.*/', ''),
       coalesce(sb.error_code(m.message_body)::text, sb.body_text(m.message_body), '')
  from sb.receive($1) as m`, queue)
}

func wantRows(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Rules
func TestDDLErrors(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	s.Exec(`
create function public.accept(xml) returns boolean language sql return true;
create function public.accept_json(jsonb) returns boolean language sql return true;
create function public.step() returns void language sql as '';
create function public.step_of(integer) returns void language sql as '';
create function pg_temp.step() returns void language sql as '';
select sb.create_message_type('Checked', 'VALID_XML', 'public.accept(xml)');
select sb.create_queue('Idle');
select sb.create_queue('Off', enabled => false);
select sb.create_queue('Active', activation_procedure => 'public.step');
select sb.create_event_notification('watch', 'Idle', 'queue_activation', 'Warehouse');
select sb.create_broker_priority('high', 'Buy', 'Orders', priority_level => 9);
select sb.create_route('away', 'remote://warehouse', 'Elsewhere')`)
	const (
		documented = "https://schemas.microsoft.com/SQL/"
		long129    = "repeat('é', 129)"
		long257    = "repeat('é', 257)"
	)
	for code, calls := range map[string][]string{
		"42602": {
			"create_message_type(null)", "create_message_type('')", "create_message_type(" + long129 + ")",
			"create_contract('', '{Request}')", "create_queue(null)", "create_queue('#temporary')",
			"create_service('', 'Idle')", "create_service(" + long129 + ", 'Idle')", "create_route('', 'LOCAL')",
			"create_broker_priority('')", "create_broker_priority('p', remote_service_name => '')",
			"create_broker_priority('p', remote_service_name => " + long257 + ")",
			"create_event_notification('', 'Idle', 'QUEUE_ACTIVATION', 'Warehouse')",
			"create_event_notification('n', 'Idle', 'QUEUE_ACTIVATION', " + long257 + ")",
			"alter_queue(null, enabled => true)", "drop_message_type('')", "create_contract('c', array[null::text])",
		},
		"42710": {
			"create_message_type('Request')", "create_message_type('DEFAULT')",
			"create_message_type('" + documented + "ServiceBroker/Error')",
			"create_message_type('http://schemas.microsoft.com/SQL/ServiceBroker/Error')",
			"create_contract('Buy', '{Request}')", "create_queue('Idle')", "create_service('Orders', 'Idle')",
			"create_route('AutoCreatedLocal', 'LOCAL')", "create_broker_priority('high')",
			"create_broker_priority('other', 'Buy', 'Orders')",
			"create_event_notification('watch', 'Idle', 'QUEUE_ACTIVATION', 'Warehouse')",
			"alter_service('Warehouse', add_contracts => '{Buy}')",
		},
		"42704": {
			"alter_message_type('none', 'NONE')", "drop_message_type('none')", "drop_message_type('request')",
			"drop_contract('none')", "create_contract('c', '{none}')", "create_service('s', 'Idle', '{none}')",
			"alter_service('Orders', add_contracts => '{none}')", "alter_service('Orders', drop_contracts => '{Buy}')",
			"alter_route('none', 'LOCAL')", "drop_route('none')", "alter_broker_priority('none', priority_level => 1)",
			"drop_broker_priority('none')", "create_broker_priority('p', 'none')", "drop_event_notification('none', 'Idle')",
			"grant_receive('Idle', 'nobody at all')", "grant_admin('nobody at all')", "grant_references('none', 'public')",
			"alter_authorization('contract', 'none', current_user)", "alter_authorization('route', 'away', 'nobody at all')",
		},
		"S0208": {
			"alter_queue('none', enabled => true)", "drop_queue('none')", "create_service('s', 'none')",
			"alter_service('Orders', 'none')", "create_event_notification('n', 'none', 'QUEUE_ACTIVATION', 'Warehouse')",
			"drop_event_notification('n', 'none')", "grant_receive('none', 'public')", "alter_authorization('queue', 'none', current_user)",
		},
		"S8423": {
			"alter_service('none', 'Idle')", "drop_service('none')", "create_broker_priority('p', null, 'none')",
			"grant_send('none', 'public')", "alter_authorization('service', 'none', current_user)",
		},
		"S3716": {"drop_message_type('Request')", "drop_contract('Buy')", "drop_queue('OrderQueue')", "drop_service('Orders')"},
		"S8403": {"create_contract('c', '{Request,Request}')", "create_contract('c', '{Request}', '{Request}')"},
		"S8404": {
			"create_service('s', 'Idle', '{Buy,Buy}')", "alter_service('Orders', add_contracts => '{Buy,Buy}')",
		},
		"S8492": {"create_contract('c')", "create_contract('c', sent_by_target => '{Reply}')"},
		"S8493": {"alter_service('Orders')", "alter_service('Orders', add_contracts => null)"},
		"S9613": {"alter_queue('Active', execute_as => 'nobody at all')"},
		"S9614": {
			"alter_queue('Off', activation_procedure => 'public.none')", "alter_queue('Off', activation_procedure => 'step')",
			"alter_queue('Off', activation_procedure => 'a.b.c')", "alter_queue('Off', activation_procedure => '\"')",
			"create_queue('q', activation_procedure => 'public.none')", "alter_queue('Off', activation_enabled => true)",
		},
		"S9653": {"alter_queue('Off', activation_procedure => 'public.step_of')"},
		"S9742": {"alter_queue('Off', activation_procedure => 'pg_temp.step')"},
		"S9617": {"alter_service('Orders', 'Off')"},
		"S9659": {
			"create_route('r', null)", "create_route('r', '')", "create_route('r', 'LOCAL', '')",
			"create_route('r', 'LOCAL', 's', '')", "alter_route('away', mirror_address => '')",
		},
		"S9660": {
			"create_route('r', " + long257 + ")", "create_route('r', 'LOCAL', " + long257 + ")",
			"create_route('r', 'LOCAL', 's', " + long129 + ")",
		},
		"S9661": {"create_route('r', 'remote://a', mirror_address => 'remote://b')", "alter_route('away', mirror_address => 'remote://b')"},
		"S9662": {"create_route('r', 'LOCAL', broker_instance => 'x')"},
		"S9663": {
			"alter_message_type('DEFAULT', 'EMPTY')", "drop_message_type('DEFAULT')", "drop_contract('DEFAULT')",
			"drop_message_type('http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog')",
			"drop_service('" + documented + "Notifications/EventNotificationService')",
			"alter_queue('EventNotificationErrorsQueue', enabled => false)", "drop_queue('EventNotificationErrorsQueue')",
			"create_service('s', 'EventNotificationErrorsQueue')", "grant_references('DEFAULT', 'public')",
			"create_contract('c', '{" + documented + "ServiceBroker/EndDialog}')",
			"create_event_notification('n', 'EventNotificationErrorsQueue', 'QUEUE_ACTIVATION', 'Warehouse')",
			"alter_authorization('contract', 'DEFAULT', current_user)",
		},
		"S9717": {"alter_queue('Idle', activation_procedure => 'public.step')"},
		"S9718": {"create_event_notification('n', 'Active', 'QUEUE_ACTIVATION', 'Warehouse')"},
		"S9743": {"create_route('r', 'remote://a', 's', 'i', mirror_address => 'LOCAL')"},
		"S9744": {
			"create_route('r', 'TRANSPORT')", "create_route('r', 'remote://')", "create_route('r', 'remote://a/b')",
			"create_route('r', 'tcp://host:1')", "create_route('r', 'local')",
		},
		"S9746": {
			"create_route('r', 'LOCAL', lifetime => '0')", "create_route('r', 'LOCAL', lifetime => '-1 second')",
			"create_route('r', 'LOCAL', lifetime => '100 years')",
		},
		"S9747": {"create_route('r', 'remote://a', 's', 'i', mirror_address => 'remote://a')"},
		"S8413": {"create_event_notification('n', 'Off', 'QUEUE_ACTIVATION', 'Warehouse', " + long129 + ")"},
		"22023": {
			"create_message_type('m', null)", "create_message_type('m', 'SOME')", "create_message_type('m', 'VALID_XML')",
			"create_message_type('m', 'VALID_JSON')", "create_message_type('m', 'NONE', 'public.accept(xml)')",
			"create_message_type('m', 'WELL_FORMED_JSON', schema => '{}')",
			"create_message_type('m', 'VALID_XML', 'public.accept(xml)', '{}')",
			"create_message_type('m', 'VALID_JSON', 'public.accept_json(jsonb)', '{}')",
			"create_message_type('m', 'VALID_XML', 'public.accept_json(jsonb)')",
			"create_message_type('m', 'VALID_JSON', 'public.accept(xml)')",
			"create_message_type('m', 'VALID_XML', 'public.step()')",
			"create_message_type('m', 'VALID_JSON', schema => '{\"$ref\":\"#\"}')",
			"alter_message_type('Request')", "alter_message_type('Request', 'VALID_XML')",
			"alter_message_type('Request', validator => 'public.accept(xml)')",
			"create_queue('q', max_queue_readers => -1)", "create_queue('q', max_queue_readers => 32768)",
			"alter_queue('Idle')", "alter_queue('Active', drop_activation => true, max_queue_readers => 1)",
			"alter_route('away')", "create_route('r', 'LOCAL', 's', 'i', mirror_address => 'remote://a')",
			"alter_broker_priority('high')", "create_broker_priority('p', priority_level => 0)",
			"create_broker_priority('p', priority_level => 11)",
			"create_event_notification('n', 'Idle', 'CREATE_TABLE', 'Warehouse')",
			"create_event_notification('n', 'Idle', null, 'Warehouse')",
			"alter_authorization('table', 'x', current_user)", "alter_authorization(null, 'x', current_user)",
			"grant_admin('public')", "set_option('none', 'on')", "set_option(null, 'on')", "set_option('validate_on_send', 'yes')",
			"set_option('system_names', null)", "set_option('poison_message_threshold', '0')",
			"set_option('poison_message_threshold', '99999999999')",
		},
	} {
		for _, call := range calls {
			if err := s.ExecError(code, "select sb."+call); err.Code != "42501" && (err.Message == "" || strings.Contains(err.Message, "%")) {
				t.Errorf("%s: message %q", call, err.Message)
			}
		}
	}
	err := s.ExecError("S9614", "select sb.alter_queue('Off', activation_procedure => 'public.step()')")
	if !strings.Contains(err.Detail, "without the parentheses") {
		t.Errorf("detail %q", err.Detail)
	}
	// Failing verbs change nothing.
	wantRows(t, "queues", s.Query("select q.name from sb.service_queues as q where q.name = 'q'"))
	wantRows(t, "contracts", s.Query("select c.name from sb.service_contracts as c where c.name = 'c'"))
}

func TestSetUpRunsTwice(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	for range 2 {
		s.Exec(`
select sb.create_message_type('Request', if_not_exists => true),
       sb.create_contract('Buy', '{Request}', if_not_exists => true),
       sb.create_queue('OrderQueue', if_not_exists => true),
       sb.create_service('Orders', 'OrderQueue', if_not_exists => true),
       sb.create_route('r', 'LOCAL', if_not_exists => true),
       sb.create_broker_priority('p', if_not_exists => true),
       sb.create_event_notification('n', 'OrderQueue', 'BROKER_QUEUE_DISABLED', 'Warehouse', if_not_exists => true)`)
	}
	for range 2 {
		// Each in its turn: a drop is refused while something uses the object.
		for _, call := range []string{
			"event_notification('n', 'OrderQueue', if_exists => true)", "broker_priority('p', if_exists => true)",
			"route('r', if_exists => true)", "service('Orders', if_exists => true)", "service('Warehouse', if_exists => true)",
			"queue('OrderQueue', if_exists => true)", "queue('WarehouseQueue', if_exists => true)", "contract('Buy', if_exists => true)",
			"message_type('Request', if_exists => true)", "message_type('Reply', if_exists => true)",
			"event_notification('n', 'OrderQueue', if_exists => true)",
		} {
			s.Exec("select sb.drop_" + call)
		}
	}
	wantRows(t, "what is left", s.Query(`
select (select count(*) from sb.service_queues), (select count(*) from sb.services),
       (select count(*) from sb.service_contracts), (select count(*) from sb.service_message_types)`), "1|1|2|5")
	// The cells of a dropped queue stay for a minute, since a receive under way may read them. Then they go, and those of
	// the system's queue do not.
	left := "select count(*) from pg_class as c where c.relnamespace = 'sb_internal'::regnamespace and c.relkind = 'S' and c.relname ~ '^queue_[0-9]' and c.relname !~ '^queue_2_'"
	before := s.Value(left)
	s.Exec("select sb.maintain()")
	wantValue(t, "sequences within the minute", s.Value(left), before)
	letMinutePass(s)
	s.Exec("select sb.maintain()")
	wantValue(t, "sequences after a minute", s.Value(left), "0")
}

// letMinutePass makes dropped queues old enough for sb.maintain to clean up after them.
func letMinutePass(s *pgtest.Session) {
	s.Query("select setval(c.oid::regclass, 1) from pg_class as c where c.relnamespace = 'sb_internal'::regnamespace and c.relname ~ '^queue_[0-9]+_search$'")
}

func TestParallelCreate(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	const sessions = 10
	all := make([]*pgtest.Session, sessions)
	for i := range all {
		all[i] = db.Session(t, fmt.Sprint("creator ", i))
	}
	for _, create := range []string{
		"sb.create_queue('q'%s)", "sb.create_message_type('m'%s)", "sb.create_contract('c', '{Request}'%s)",
		"sb.create_service('s', 'OrderQueue'%s)", "sb.create_route('r', 'LOCAL'%s)", "sb.create_broker_priority('p'%s)",
		"sb.create_event_notification('n', 'OrderQueue', 'BROKER_QUEUE_DISABLED', 'Warehouse'%s)",
	} {
		created := 0
		var results []<-chan error
		for _, s := range all {
			results = append(results, s.GoExec("select "+fmt.Sprintf(create, "")))
		}
		for _, result := range results {
			switch err := wait(t, result); pgtest.SQLState(err) {
			case "42710":
			case "":
				if err != nil {
					t.Error(err)
				}
				created++
			default:
				t.Error(err)
			}
		}
		if created != 1 {
			t.Errorf("%s: created %d times", create, created)
		}
		results = results[:0]
		for _, s := range all {
			results = append(results, s.GoExec("select "+fmt.Sprintf(create, ", if_not_exists => true")))
		}
		for _, result := range results {
			if err := wait(t, result); err != nil {
				t.Errorf("%s: %v", create, err)
			}
		}
	}
	// What a snapshot does not show is a reason to retry, never a broken constraint.
	all[0].Exec("begin isolation level repeatable read; select 1")
	owner.Exec("select sb.create_queue('late')")
	all[0].ExecError("40001", "select sb.create_queue('late')")
	all[0].Rollback()
}

func TestParallelGrants(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	roles := []string{db.CreateRole(t, "a"), db.CreateRole(t, "b"), db.CreateRole(t, "c"), db.CreateRole(t, "d")}
	var results []<-chan error
	for i, role := range roles {
		results = append(results, db.Session(t, fmt.Sprint("granter ", i)).Go(func(ctx context.Context, conn *pgx.Conn) error {
			for range 10 {
				for _, verb := range []string{"grant", "revoke"} {
					if _, err := conn.Exec(ctx, "select sb."+verb+"_receive('OrderQueue', $1::name), sb."+verb+"_admin($1::name)", role); err != nil {
						return err
					}
				}
			}
			return nil
		}))
	}
	for _, result := range results {
		if err := wait(t, result); err != nil {
			t.Error(err)
		}
	}
	wantRows(t, "receivers", owner.Query("select q.receivers from sb_internal.queue as q where q.name = 'OrderQueue'"), "{}")
}

// Rules
func TestAlterMessageType(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	s.Exec(`
create function public."Accept" (jsonb) returns boolean language sql return $1 ? 'id'`)
	show := func() string {
		return s.Value(`
select t.validation, t.validation_desc, t.validation_kind, coalesce(t.validator, '-'), coalesce(t.schema::text, '-'), m.validation
  from sb.service_message_types as t
  join sb_internal.contract_message as m on m.message_type_id = t.message_type_id
 where t.name = 'Request'`)
	}
	for _, step := range []struct{ call, want string }{
		{"'VALID_JSON', schema => '{\"type\":\"object\"}'", `J|JSON|VALID_JSON|-|{"type": "object"}|VALID_JSON`},
		{"schema => '{}'", "J|JSON|VALID_JSON|-|{}|VALID_JSON"},
		{"'valid_json'", "J|JSON|VALID_JSON|-|{}|VALID_JSON"},
		{`validator => 'public."Accept"(jsonb)'`, `J|JSON|VALID_JSON|public."Accept"|-|VALID_JSON`},
		{"'EMPTY'", "E|EMPTY|EMPTY|-|-|EMPTY"},
		{"'well_formed_xml'", "X|XML|WELL_FORMED_XML|-|-|WELL_FORMED_XML"},
		{"'NONE'", "N|NONE|NONE|-|-|NONE"},
	} {
		s.Exec("select sb.alter_message_type('Request', " + step.call + ")")
		wantRows(t, step.call, []string{show()}, step.want)
	}
}

// Rules
func TestAlterQueue(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	s.Exec(`create function public."Step"() returns void language sql as ''; create procedure public.walk() language sql as ''`)
	me := s.Value("select current_user")
	for _, step := range []struct{ call, want string }{
		{"max_queue_readers => 4", "4|NULL|NULL|f|t|f|t"},
		{`activation_procedure => 'public."Step"'`, `4|public."Step"|` + me + "|t|t|f|t"}, // the first one is born on
		{"activation_enabled => false", `4|public."Step"|` + me + "|f|t|f|t"},
		{"activation_procedure => 'PUBLIC.walk', max_queue_readers => 0", "0|public.walk|" + me + "|f|t|f|t"},
		{"retention => true, poison_message_handling => false, enabled => false", "0|public.walk|" + me + "|f|f|t|f"},
		{"drop_activation => true", "NULL|NULL|NULL|f|f|t|f"},
		{"enabled => true", "NULL|NULL|NULL|f|t|t|f"},
	} {
		s.Exec("select sb.alter_queue('OrderQueue', " + step.call + ")")
		wantRows(t, step.call, s.Query(`
select q.max_readers, q.activation_procedure, q.execute_as, q.is_activation_enabled, q.is_receive_enabled,
       q.is_retention_enabled, q.is_poison_message_handling_enabled
  from sb.service_queues as q
 where q.name = 'OrderQueue'`), step.want)
	}

	// Off: sends wait; on: they are delivered by that call, in order.
	s.Exec("select sb.alter_queue('WarehouseQueue', enabled => false)")
	beginAndSend(s, "1", "2")
	wantRows(t, "waiting", s.Query("select t.message_sequence_number, t.transmission_status <> '' from sb.transmission_queue as t"), "0|t", "1|t")
	s.ExecError("S9617", "select * from sb.receive('WarehouseQueue')")
	s.Exec("select sb.alter_queue('WarehouseQueue', enabled => true)")
	wantRows(t, "waiting", s.Query("select * from sb.transmission_queue"))
	wantRows(t, "received", received(s, "WarehouseQueue"), "Request|1", "Request|2")
}

// poison rolls back as many receives as switch the queue off.
func poison(s *pgtest.Session, queue string) {
	for range 5 {
		s.Begin()
		s.Exec("select * from sb.receive($1)", queue)
		s.Rollback()
	}
}

// Rules: R-359
func TestAlterQueueFreesPoisonedQueue(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	beginAndSend(s, "bad")
	poison(s, "WarehouseQueue")
	state := func() []string {
		return s.Query(`
select q.is_receive_enabled, q.is_enqueue_enabled, x.is_on, x.consecutive_rollbacks
  from sb.service_queues as q
  join sb.queue_statistics as x on x.queue_id = q.queue_id
 where q.name = 'WarehouseQueue'`)
	}
	wantRows(t, "poisoned", state(), "f|f|f|5")
	s.Exec("select sb.alter_queue('WarehouseQueue', enabled => true)")
	wantRows(t, "switched on", state(), "t|t|t|0")
	wantRows(t, "received", received(s, "WarehouseQueue"), "Request|bad")
}

func TestNotifications(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	listener := db.Session(t, "listener")
	id := s.Value("select q.queue_id from sb.service_queues as q where q.name = 'OrderQueue'")
	listener.Exec("listen sb_events; listen sb_queue_" + id)
	for _, step := range []struct{ call, want string }{
		{"sb.create_queue('q')", `sb_events {"event" : "queue_created", "queue" : "q"}`},
		{"sb.alter_queue('OrderQueue', enabled => false)", `sb_events {"event" : "queue_disabled", "queue" : "OrderQueue"}, sb_queue`},
		{"sb.alter_queue('OrderQueue', enabled => true)", `sb_events {"event" : "queue_enabled", "queue" : "OrderQueue"}, sb_queue`},
		{"sb.alter_queue('OrderQueue', max_queue_readers => 2)", `sb_events {"event" : "queue_altered", "queue" : "OrderQueue"}, sb_queue`},
		{"sb.create_route('r', 'remote://there')", `sb_events {"event" : "route_created", "route" : "r"}`},
		{"sb.drop_route('r')", `sb_events {"event" : "route_dropped", "route" : "r"}`},
		{"sb.drop_service('Orders')", `sb_events {"event" : "service_dropped", "service" : "Orders"}`},
		{"sb.drop_queue('OrderQueue')", `sb_events {"event" : "queue_dropped", "queue" : "OrderQueue"}, sb_queue`},
	} {
		s.Exec("select " + step.call)
		want := strings.Count(step.want, "sb_")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var got []string
		for len(got) < want {
			n, err := listener.Conn.WaitForNotification(ctx)
			if err != nil {
				t.Fatalf("%s: %v after %v", step.call, err, got)
			}
			if n.Channel == "sb_events" {
				got = append([]string{n.Channel + " " + n.Payload}, got...)
			} else {
				got = append(got, strings.TrimSuffix(n.Channel, "_"+id))
			}
		}
		cancel()
		wantRows(t, step.call, []string{strings.Join(got, ", ")}, step.want)
	}
}

// Rules
func TestBrokerPriorities(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	levels := func() []string { return s.Query("select b.priority_levels from sb_internal.broker as b") }
	s.Exec("select sb.create_broker_priority('any'), sb.create_broker_priority('high', 'Buy', priority_level => 9)")
	wantRows(t, "levels", levels(), "{9,5}")
	wantRows(t, "priorities", s.Query("select p.name, p.service_contract_id is null, p.local_service_id, p.remote_service_name, p.priority from sb.conversation_priorities as p order by p.name"),
		"any|t|NULL|NULL|5", "high|f|NULL|NULL|9")
	first := beginAndSend(s, "1")
	s.Exec("select sb.alter_broker_priority('high', local_service_name => 'Orders', priority_level => 1)")
	second := beginAndSend(s, "2")
	wantRows(t, "priority is fixed at birth", s.Query(`
select e.priority from sb.conversation_endpoints as e where e.conversation_handle = $1::uuid
union all
select e.priority from sb.conversation_endpoints as e where e.conversation_handle = $2::uuid`, first, second), "9", "1")
	s.Exec("select sb.drop_broker_priority('high')")
	wantRows(t, "levels stay", levels(), "{9,5,1}")
	// Each queue has the hints that receive reads: also a new one, also an old one.
	s.Exec("select sb.create_queue('new')")
	wantRows(t, "hints", s.Query("select count(*) from pg_sequences where schemaname = 'sb_internal' and sequencename ~ '_hint_'"), "12")
	wantRows(t, "received", received(s, "WarehouseQueue"), "Request|1")
}

// Rules
func TestRoutes(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	s.Exec("select sb.create_route('r', 'remote://a', 'Far', 'instance', '1 hour', 'remote://b')")
	show := func() []string {
		return s.Query(`
select r.remote_service_name, r.broker_instance, r.address, r.mirror_address,
       r.lifetime between now() + interval '30 minutes' and now() + interval '2 hours'
  from sb.routes as r
 where r.name = 'r'`)
	}
	wantRows(t, "created", show(), "Far|instance|remote://a|remote://b|t")
	s.Exec("select sb.alter_route('r', address => 'remote://c', lifetime => '1 minute')")
	wantRows(t, "altered", show(), "Far|instance|remote://c|remote://b|f")

	// Without any route messages wait; a new route to here takes them along.
	s.Exec("select sb.drop_route('AutoCreatedLocal')")
	beginAndSend(s, "1")
	wantRows(t, "waiting", s.Query("select t.to_service_name from sb.transmission_queue as t"), "Warehouse")
	s.Exec("select sb.create_route('here', 'LOCAL', 'Warehouse')")
	wantRows(t, "received", received(s, "WarehouseQueue"), "Request|1")
}

func TestCreateServiceDelivers(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	s.Exec("select sb.drop_service('Warehouse')")
	beginAndSend(s, "1", "2")
	s.Exec("select sb.create_service('Warehouse', 'WarehouseQueue', '{Buy}')")
	wantRows(t, "received", received(s, "WarehouseQueue"), "Request|1", "Request|2")
}

// Rules: R-076
func TestDropServiceTellsPeers(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	beginAndSend(s, "1")
	handle := beginAndSend(s, "2")
	s.Exec("select sb.drop_service('Warehouse')")
	for range 2 {
		wantRows(t, "initiator", received(s, "OrderQueue"), "Error|-8470")
	}
	wantRows(t, "endpoints", s.Query("select e.state from sb.conversation_endpoints as e"), "ER", "ER")
	wantRows(t, "warehouse messages", s.Query("select m.message_body from sb_internal.message as m"))
	s.Exec("select sb.end_conversation($1::uuid)", handle)
	s.Exec("select sb.drop_queue('WarehouseQueue')")
}

func TestDropServiceIsLinear(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	s.Exec("select sb.create_queue('Replies'), sb.create_service('Loop', 'Replies', '{Buy}')")
	begin := func(dialogs int, service string) {
		s.Exec(fmt.Sprintf(`
do $$
declare
  handle uuid;
begin
  for i in 1..%d loop
    handle := sb.begin_dialog('Orders', '%s', 'Buy');
    perform sb.send(handle, 'Request', 'x'::text);
  end loop;
end
$$`, dialogs, service))
	}
	// Statistics may be of any time, and autovacuum's help is luck. These say that there are many conversations, but hardly
	// any of the service.
	begin(2000, "Loop")
	for _, table := range s.Query("select c.oid::regclass from pg_class as c where c.relkind = 'r' and c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)") {
		s.Exec("alter table " + table + " set (autovacuum_enabled = off)")
		s.Exec("analyze " + table)
	}
	took := func(dialogs int) time.Duration {
		begin(dialogs, "Warehouse")
		start := time.Now()
		s.Exec("select sb.drop_service('Warehouse')")
		elapsed := time.Since(start)
		s.Exec("select sb.new_broker(), sb.create_service('Warehouse', 'WarehouseQueue', '{Buy}')")
		return elapsed
	}
	few, many := took(500), took(4000)
	t.Logf("500 dialogs took %v, 4000 took %v", few, many)
	if perDialog := many / 4000; perDialog > 4*few/500 && perDialog > time.Millisecond {
		t.Errorf("500 dialogs took %v, 4000 took %v", few, many)
	}
}

// Rules
func TestDropContract(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	handle := beginAndSend(s, "1")
	s.Exec("select sb.alter_service('Warehouse', drop_contracts => '{Buy}')")
	// Existing dialogs go on.
	s.Exec("select sb.send($1::uuid, 'Request', '2'::text)", handle)
	s.Exec("select sb.drop_contract('Buy')")
	s.ExecError("S8426", "select sb.send($1::uuid, 'Request', '3'::text)", handle)
	wantRows(t, "target", s.Query(`
select e.state, sb.error_code(m.message_body)
  from sb.conversation_endpoints as e
  left join sb.queue_messages as m
    on m.conversation_handle = e.conversation_handle
   and m.message_type_name ~ 'Error$'`), "ER|-8487")
	wantRows(t, "received", received(s, "WarehouseQueue"), "Error|-8487", "Request|1", "Request|2")
	s.Exec("select sb.end_conversation(e.conversation_handle) from sb.conversation_endpoints as e")
	wantRows(t, "left over", s.Query("select count(*) from sb_internal.endpoint"), "0")
}

// Rules: R-072
func TestAlterServiceMovesMessages(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	s.Exec("select sb.create_queue('New'), sb.alter_queue('WarehouseQueue', retention => true)")
	first := beginAndSend(s, "1", "2")
	s.Exec("select * from sb.receive('WarehouseQueue', 1)")
	target := s.Value("select e.conversation_handle from sb.conversation_endpoints as e where not e.is_initiator")
	s.Exec("select sb.begin_conversation_timer($1::uuid, '1 microsecond')", target)

	// A sender that has not committed is waited for, and its message comes along.
	sender := db.Session(t, "sender")
	sender.Begin()
	sender.Exec("select sb.send($1::uuid, 'Request', '3'::text)", first)
	mover := db.Session(t, "mover")
	moved := mover.GoExec("select sb.alter_service('Warehouse', 'New')")
	pgtest.WaitBlocked(t, mover, sender)
	sender.Exec("select sb.send($1::uuid, 'Request', '4'::text)", first)
	sender.Commit()
	if err := wait(t, moved); err != nil {
		t.Fatal(err)
	}
	s.Exec("select sb.send($1::uuid, 'Request', '5'::text)", first)
	wantRows(t, "all in the new queue", s.Query(`
select m.queue_name, m.status, m.message_sequence_number
  from sb.queue_messages as m
 where m.conversation_handle = $1::uuid
 order by m.status, m.queuing_order`, target),
		"New|0|0", "New|1|-1", "New|1|1", "New|1|2", "New|1|3", "New|1|4")
	wantRows(t, "old queue", received(s, "WarehouseQueue"))
	wantRows(t, "new queue", received(s, "New"), "DialogTimer|", "Request|2", "Request|3", "Request|4", "Request|5")
	s.Exec("select sb.drop_queue('WarehouseQueue')")
}

// TestAlterServiceAgainstSenders moves a service to and fro while others send: nothing is lost, doubled or left behind.
func TestAlterServiceAgainstSenders(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	s.Exec("select sb.create_queue('Other')")
	const senders, messages = 4, 150
	var results []<-chan error
	for i := range senders {
		results = append(results, db.Session(t, fmt.Sprint("sender ", i)).Go(func(ctx context.Context, conn *pgx.Conn) error {
			var handle string
			if err := conn.QueryRow(ctx, "select sb.begin_dialog('Orders', 'Warehouse', 'Buy')::text").Scan(&handle); err != nil {
				return err
			}
			for n := range messages {
				if _, err := conn.Exec(ctx, "select sb.send($1::uuid, 'Request', $2::text)", handle, strconv.Itoa(n)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for i := range 20 {
		s.Exec("select sb.alter_service('Warehouse', $1)", []string{"Other", "WarehouseQueue"}[i%2])
	}
	for _, result := range results {
		if err := wait(t, result); err != nil {
			t.Fatal(err)
		}
	}
	wantRows(t, "messages by queue", s.Query("select m.queue_name, count(*) from sb.queue_messages as m group by 1"),
		fmt.Sprintf("WarehouseQueue|%d", senders*messages))
	wantRows(t, "out of order", s.Query(`
select count(*)
  from (
    select m.message_sequence_number,
           row_number() over (partition by m.conversation_handle order by m.queuing_order) - 1 as position
      from sb.queue_messages as m
  ) as o
 where o.message_sequence_number <> o.position`), "0")
}

// TestDropServiceAgainstSenders drops and creates a service while others use it as applications do: one dialog a
// transaction, read, answered, ended, new ones begun, also from the service to itself. Verbs may find it gone; nobody
// may deadlock.
func TestDropServiceAgainstSenders(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	s.Exec(`
select sb.alter_queue('WarehouseQueue', poison_message_handling => false), sb.alter_queue('OrderQueue', poison_message_handling => false)`)
	// Each list is one transaction.
	work := [][]string{
		{`select sb.send(sb.begin_dialog('Warehouse', 'Warehouse', 'Buy'), 'Request', 'x'::text)`},
		{
			`with d as materialized (select sb.begin_dialog('Orders', 'Warehouse', 'Buy') as handle)
			 select sb.send(d.handle, 'Request', 'x'::text), sb.begin_conversation_timer(d.handle, '1 millisecond') from d`,
		},
		{
			`select sb.send(m.conversation_handle, 'Reply', '<a/>'::xml)
			   from sb.receive('WarehouseQueue', 1) as m where m.message_type_name = 'Request'`,
			`select sb.begin_dialog('Warehouse', 'Orders', 'Buy')`,
		},
		{`select sb.end_conversation(m.conversation_handle) from sb.receive('OrderQueue', 1) as m`},
		{`select sb.end_conversation(m.conversation_handle) from sb.receive('WarehouseQueue', 1) as m`},
	}
	var stop atomic.Bool
	var results []<-chan error
	for i := range 4 {
		results = append(results, db.Session(t, fmt.Sprint("worker ", i)).Go(func(ctx context.Context, conn *pgx.Conn) error {
			for n := i; !stop.Load(); n++ {
				tx, err := conn.Begin(ctx)
				if err != nil {
					return err
				}
				for _, sql := range work[n%len(work)] {
					if _, err = tx.Exec(ctx, sql); err != nil {
						break
					}
				}
				if err == nil {
					err = tx.Commit(ctx)
				} else {
					_ = tx.Rollback(ctx)
				}
				switch pgtest.SQLState(err) {
				case "", "S8423", "S8426", "S8429":
				default:
					return err
				}
			}
			return nil
		}))
	}
	for range 15 {
		s.Exec("select sb.drop_service('Warehouse')")
		s.Exec("select sb.create_service('Warehouse', 'WarehouseQueue', '{Buy}')")
		s.Exec("select pg_sleep(0.05)") // let them make something to drop
	}
	stop.Store(true)
	for _, result := range results {
		if err := wait(t, result); err != nil {
			t.Errorf("worker: %s %v", pgtest.SQLState(err), err)
		}
	}
	wantRows(t, "endpoints without service", s.Query(`
select count(*)
  from sb_internal.endpoint as e
 where not exists (select 1 from sb_internal.service as s where s.service_id = e.service_id)`), "0")
}

// TestDropServiceGivesWay: a transaction that goes on to use what drop_service has locked meanwhile is let through.
func TestDropServiceGivesWay(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	handles := []string{beginAndSend(s, "1"), beginAndSend(s, "1")}
	slices.Sort(handles)
	worker := db.Session(t, "worker")
	worker.Begin()
	worker.Exec("select sb.send($1::uuid, 'Request', '2'::text)", handles[1])
	dropper := db.Session(t, "dropper")
	dropped := dropper.GoExec("select sb.drop_service('Orders')")
	pgtest.WaitBlocked(t, dropper, worker)
	worker.Exec("select sb.end_conversation($1::uuid)", handles[1])
	worker.Exec("select sb.send($1::uuid, 'Request', '2'::text)", handles[0])
	worker.Exec("select sb.begin_dialog('Orders', 'Warehouse', 'Buy')")
	worker.Commit()
	if err := wait(t, dropped); err != nil {
		t.Fatal(err)
	}
	wantRows(t, "initiators left", s.Query("select count(*) from sb.conversation_endpoints as e where e.is_initiator"), "0")
	// Told to each peer; the one that ended before had told it already.
	wantRows(t, "errors", s.Query(`
select sb.error_code(m.message_body), count(*) from sb.queue_messages as m where m.message_type_name ~ 'Error$' group by 1`), "-8470|1")
}

// Rules: R-061
func TestDropQueueWaitsForReceivers(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	beginAndSend(s, "1")
	reader := db.Session(t, "reader")
	reader.Begin()
	reader.Exec("select sb.end_conversation(m.conversation_handle) from sb.receive('WarehouseQueue') as m")
	s.Exec("select sb.alter_service('Orders', add_contracts => '{Buy}')")
	dropper := db.Session(t, "dropper")
	dropped := dropper.GoExec(`
do $$
begin
  perform sb.drop_service('Warehouse');
  perform sb.drop_queue('WarehouseQueue');
end
$$`)
	pgtest.WaitBlocked(t, dropper, reader)
	// It holds nothing that the reader wants.
	reader.Exec("select * from sb.receive('WarehouseQueue')")
	reader.Exec("select * from sb.receive('OrderQueue')")
	reader.Commit()
	if err := wait(t, dropped); err != nil {
		t.Fatal(err)
	}
	s.ExecError("S0208", "select * from sb.receive('WarehouseQueue')")
}

// Rules
func TestBrokerSwitches(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	instance := func() string { return s.Value("select b.broker_instance from sb.broker as b") }
	before := instance()

	s.Exec("select sb.disable_broker()")
	handle := beginAndSend(s, "1")
	wantRows(t, "disabled", s.Query("select b.is_broker_enabled, (select count(*) from sb.transmission_queue) from sb.broker as b"), "f|1")
	s.Exec("select sb.enable_broker()")
	wantRows(t, "enabled", s.Query("select b.is_broker_enabled, (select count(*) from sb.transmission_queue) from sb.broker as b"), "t|0")

	s.Exec("select sb.disable_broker(), sb.error_broker_conversations()")
	wantRows(t, "initiator", received(s, "OrderQueue"), "Error|-9719")
	wantRows(t, "target", received(s, "WarehouseQueue"), "Error|-9719", "Request|1")
	s.ExecError("S8429", "select sb.send($1::uuid, 'Request', '2'::text)", handle)
	if after := instance(); after != before {
		t.Errorf("broker instance changed from %s to %s", before, after)
	}

	s.Exec(`
select sb.create_state_table('public.carts', 'total integer');
insert into public.carts select g.conversation_group_id, 1 from sb.conversation_groups as g;
select sb.set_state(g.conversation_group_id, '{}') from sb.conversation_groups as g;
select sb.disable_broker();
select sb.new_broker()`)
	wantRows(t, "new broker", s.Query(`
select b.is_broker_enabled, (select count(*) from sb.conversation_endpoints), (select count(*) from sb.conversation_groups),
       (select count(*) from sb.queue_messages), (select count(*) from sb_internal.send_counter),
       (select count(*) from sb_internal.due), (select count(*) from sb.conversation_state), (select count(*) from public.carts)
  from sb.broker as b`), "t|0|0|0|0|0|0|0")
	if instance() == before {
		t.Error("new_broker kept the broker instance")
	}
	// Everything works as before.
	beginAndSend(s, "1")
	wantRows(t, "received", received(s, "WarehouseQueue"), "Request|1")
}

// Rules: R-123
func TestNewBrokerWaitsForTransactions(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	handle := beginAndSend(s, "1")
	sender := db.Session(t, "sender")
	sender.Begin()
	sender.Exec("select sb.send($1::uuid, 'Request', '2'::text)", handle)
	done := db.Session(t, "admin").GoExec("select sb.new_broker()")
	// Busy: it tries again and again, holding nothing that the sender may want next.
	sender.Exec("select sb.send(sb.begin_dialog('Orders', 'Warehouse', 'Buy'), 'Request', 'x'::text)")
	select {
	case err := <-done:
		t.Fatalf("new_broker did not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	sender.Commit()
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	wantRows(t, "left over", s.Query("select count(*) from sb_internal.message"), "0")
}

// Rules: R-014
func TestOptions(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	s.Exec(`
select sb.set_option('system_names', 'sqlserver'), sb.set_option('honor_broker_priority', 'on'),
       sb.set_option('validate_on_send', 'on'), sb.set_option('poison_message_threshold', '7')`)
	wantRows(t, "options", s.Query("select o.name, o.value, o.default_value from sb.options as o order by o.name"),
		"honor_broker_priority|on|off", "poison_message_threshold|7|5", "system_names|sqlserver|documented", "validate_on_send|on|off")
	wantRows(t, "broker", s.Query("select b.is_honor_broker_priority_on from sb.broker as b"), "t")
	wantRows(t, "names", s.Query(`
select t.name from sb.service_message_types as t where t.message_type_id < 3
union all
select c.name from sb.service_contracts as c where c.service_contract_id < 65536
union all
select v.name from sb.services as v where v.service_id < 65536`),
		"http://schemas.microsoft.com/SQL/ServiceBroker/Error", "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog",
		"http://schemas.microsoft.com/SQL/Notifications/PostEventNotification", "DEFAULT",
		"http://schemas.microsoft.com/SQL/Notifications/EventNotificationService")
}

// eventInstance is the body of an event notification, elements in the documented order.
type eventInstance struct {
	XMLName xml.Name `xml:"EVENT_INSTANCE"`
	Fields  []struct {
		XMLName xml.Name
		Value   string `xml:",chardata"`
	} `xml:",any"`
}

// Rules
func TestEventNotifications(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	s.Exec(`
select sb.create_queue('Watch'),
       sb.create_service('Watcher', 'Watch', '{https://schemas.microsoft.com/SQL/Notifications/PostEventNotification}'),
       sb.create_event_notification('off', 'WarehouseQueue', 'BROKER_QUEUE_DISABLED', 'Watcher', 'Current Database'),
       sb.create_event_notification('work', 'WarehouseQueue', 'QUEUE_ACTIVATION', 'Watcher')`)
	beginAndSend(s, "1")
	events := func() []string {
		return s.Query(`
select m.message_type_name, m.service_name, m.conversation_handle, sb.body_text(m.message_body) from sb.receive('Watch') as m`)
	}
	got := events()
	if len(got) != 1 {
		t.Fatalf("got %d events, want one: %q", len(got), got)
	}
	field := strings.SplitN(got[0], "|", 4)
	wantRows(t, "event", field[:2], "https://schemas.microsoft.com/SQL/Notifications/EventNotification", "Watcher")
	var instance eventInstance
	if err := xml.Unmarshal([]byte(field[3]), &instance); err != nil {
		t.Fatalf("%v: %s", err, field[3])
	}
	var names, values []string
	for _, f := range instance.Fields {
		names = append(names, f.XMLName.Local)
		values = append(values, f.Value)
	}
	wantRows(t, "elements", names, "EventType", "PostTime", "SPID", "ServerName", "LoginName", "UserName", "DatabaseName",
		"SchemaName", "ObjectName", "ObjectType")
	wantRows(t, "values", []string{values[0], values[2], values[4], values[6], values[8], values[9]},
		"QUEUE_ACTIVATION", fmt.Sprint(s.PID()), db.Owner, db.Name, "WarehouseQueue", "QUEUE")
	if _, err := time.Parse("2006-01-02T15:04:05.000", values[1]); err != nil {
		t.Error(err)
	}

	// Notified: no second event before somebody receives.
	beginAndSend(s, "2")
	wantRows(t, "no further event", events())

	// One long-lived dialog each; the event of a queue switched off comes with the switch.
	poison(s, "WarehouseQueue")
	s.Exec("select * from sb.receive('WarehouseQueue')")
	if got := events(); len(got) != 1 || !strings.Contains(got[0], "<EventType>BROKER_QUEUE_DISABLED</EventType>") {
		t.Errorf("got %q", got)
	}

	// The subscriber ends the conversation: at the next event the notification is gone.
	s.Exec("select sb.end_conversation($1::uuid)", field[2])
	s.Exec("select sb.alter_queue('WarehouseQueue', enabled => true)")
	for range 3 {
		received(s, "WarehouseQueue")
	}
	beginAndSend(s, "3")
	wantRows(t, "notifications", s.Query("select n.name from sb_internal.event_notification as n"), "off")
	wantRows(t, "queue", s.Query("select q.has_activation_event from sb_internal.queue as q where q.name = 'WarehouseQueue'"), "f")

	// Dropped: the subscriber gets EndDialog.
	s.Exec("select sb.drop_event_notification('off', 'WarehouseQueue')")
	wantRows(t, "end", received(s, "Watch"), "EndDialog|")
	s.Exec("select sb.end_conversation(e.conversation_handle) from sb.conversation_endpoints as e where e.state = 'DI'")
	wantRows(t, "system dialogs left", s.Query("select * from sb.conversation_endpoints as e where e.is_system"))
}

// TestEventForMessagesThatWait: DDL that makes waiting messages ready counts as their arrival.
func TestEventForMessagesThatWait(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	s.Exec(`
select sb.create_queue('Watch'), sb.create_queue('Other'),
       sb.create_service('Watcher', 'Watch', '{https://schemas.microsoft.com/SQL/Notifications/PostEventNotification}')`)
	beginAndSend(s, "1")
	events := func() []string { return s.Query("select count(*) from sb.receive('Watch')") }
	s.Exec("select sb.create_event_notification('work', 'WarehouseQueue', 'QUEUE_ACTIVATION', 'Watcher')")
	wantRows(t, "created", events(), "1")
	s.Exec("select sb.alter_queue('WarehouseQueue', enabled => false)")
	s.Exec("select sb.alter_queue('WarehouseQueue', enabled => true)")
	wantRows(t, "switched on", events(), "1")
	s.Exec("select sb.create_event_notification('work', 'Other', 'QUEUE_ACTIVATION', 'Watcher')")
	wantRows(t, "nothing there", events(), "0")
	s.Exec("select sb.alter_service('Warehouse', 'Other')")
	wantRows(t, "moved", events(), "1")
}

func TestEventNotificationGoesWithItsQueue(t *testing.T) {
	t.Parallel()
	_, s := newApplication(t)
	s.Exec(`
select sb.create_queue('Watch'),
       sb.create_service('Watcher', 'Watch', '{https://schemas.microsoft.com/SQL/Notifications/PostEventNotification}'),
       sb.create_event_notification('work', 'WarehouseQueue', 'QUEUE_ACTIVATION', 'Watcher')`)
	beginAndSend(s, "1")
	wantRows(t, "event", s.Query("select count(*) from sb.receive('Watch')"), "1")
	s.Exec("select sb.drop_service('Warehouse')")
	s.Exec("select sb.drop_queue('WarehouseQueue')")
	wantRows(t, "end", received(s, "Watch"), "EndDialog|")
	wantRows(t, "left over", s.Query("select count(*) from sb_internal.event_notification"), "0")
}

// The poison limit switches a queue off without the catalog lock: what SEND knows of the queue must not be written anew
// by somebody who looked before that was committed.
func TestPoisonDisableBesideDDL(t *testing.T) {
	t.Parallel()
	for name, ddl := range map[string]string{
		"option":   "select sb.set_option('honor_broker_priority', 'on')",
		"priority": "select sb.create_broker_priority('p', priority_level => 7)",
		"route":    "select sb.create_route('r', 'LOCAL', service_name => 'Elsewhere')",
		"grant":    "select sb.grant_send('Warehouse', 'public')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, s := newApplication(t)
			beginAndSend(s, "bad")
			poison(s, "WarehouseQueue")
			s.Begin()
			s.Exec("select * from sb.receive('WarehouseQueue')")
			other := db.Session(t, "other")
			done := other.GoExec(ddl)
			pgtest.WaitBlocked(t, other, s)
			s.Commit()
			if err := pgtest.Wait(t, done); err != nil {
				t.Fatal(err)
			}
			wantRows(t, "status", s.Query(`
select t.is_accepting, t.is_queue_enabled, q.is_enabled
  from sb_internal.service_status as t
  join sb_internal.queue as q on q.queue_id = t.queue_id
 where q.name = 'WarehouseQueue' `), "f|f|f")
		})
	}
}
