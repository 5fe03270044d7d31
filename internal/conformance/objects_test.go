package conformance

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/migrations"
)

func TestNames(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)

	// Rules
	far, instance := strings.Repeat("🐘", 256), strings.Repeat("any text ", 14)
	a.Exec("select sb.create_route('far', 'LOCAL', $1, $2)", far, instance)
	a.Exec("select sb.create_broker_priority('far', remote_service_name => $1, priority_level => 7::smallint)", far)
	handle := a.Value("select sb.begin_dialog('Left', $1, 'Talk', broker_instance => $2)", far, instance)
	say(a, handle, "x")
	want(t, "far names", a.Query(`
select e.far_service = $1, e.far_broker_instance = $2, e.priority, t.to_service_name = $1, t.to_broker_instance = $2
  from sb.conversation_endpoints as e
  join sb.transmission_queue as t on t.conversation_handle = e.conversation_handle`, far, instance), "t|t|7|t|t")
	a.ExecError("42602", "select sb.begin_dialog('Left', $1, 'Talk')", far+"x")
	a.ExecError("S8413", "select sb.begin_dialog('Left', 'x', 'Talk', broker_instance => repeat('x', 129))")
	a.ExecError("S9660", "select sb.create_route('farther', 'LOCAL', $1)", far+"x")
	a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", handle)

	// Rules: R-006
	a.Exec(`
select sb.create_message_type('#m'), sb.create_contract('#c', '{#m}'), sb.create_service('#s', 'LeftQueue', '{#c}'),
       sb.create_route('#r', 'LOCAL'), sb.create_broker_priority('#p')`)
	a.ExecError("42602", "select sb.create_queue('#q')")
	wantQuery(t, b, "permanent", `
select name from sb.service_message_types where name ~ '#' union all select name from sb.service_contracts where name ~ '#'
union all select name from sb.services where name ~ '#' union all select name from sb.routes where name ~ '#'
union all select name from sb.conversation_priorities where name ~ '#'`, "#m", "#c", "#s", "#r", "#p")

	// Rules: R-001
	a.Exec("select sb.create_queue('dbo.Q'), sb.create_queue('app.Q'), sb.create_queue('Q')")
	wantQuery(t, a, "no schema is parsed out of a name", "select name from sb.service_queues where name ~ 'Q$' order by 1", "Q", "app.Q", "dbo.Q")
	wantQuery(t, a, "queues are no relations", "select relname from pg_class where relname ~ 'Queue$'")
	// Only the kinds that have one in SQL Server have an owner.
	wantQuery(t, a, "kinds without an owner", `
select c.relname
  from pg_class as c
 where c.relnamespace = 'sb'::regnamespace
   and c.relname in ('service_message_types', 'service_contracts', 'services', 'service_queues', 'routes', 'conversation_priorities')
   and not exists (select from pg_attribute as a where a.attrelid = c.oid and a.attname = 'owner')`, "conversation_priorities")

	// There is no verb that renames, nor one that alters a contract or an event notification.
	// Rules
	wantQuery(t, a, "verbs that alter", `
select p.proname, coalesce(p.proargnames::text ~ 'new_name', false)
  from pg_proc as p
 where p.pronamespace = 'sb'::regnamespace and p.proname ~ '^(alter|rename|set)'
 order by 1`,
		"alter_authorization|f", "alter_broker_priority|f", "alter_message_type|f", "alter_queue|f", "alter_route|f", "alter_service|f",
		"set_option|f", "set_state|f")

	// A contract changes its owner and nothing else.
	// Rules
	other := db.CreateRole(t, "other")
	if _, err := db.Superuser(t).Exec(t.Context(), "grant "+other+" to "+db.Owner); err != nil {
		t.Fatal(err)
	}
	a.Exec("select sb.alter_authorization('contract', '#c', $1)", other)
	want(t, "owner", a.Query("select owner = $1, principal_id = $1::regrole::oid::integer from sb.service_contracts where name = '#c'", other), "t|t")
	want(t, "owner, when nobody is named", a.Query("select distinct owner = $1 from sb.service_contracts where name <> '#c' and service_contract_id >= 65536", db.Owner), "t")
}

func TestSystemObjects(t *testing.T) {
	t.Parallel()
	_, a, _ := newTalk(t)
	const prefix = "https://schemas.microsoft.com/SQL/"
	// Rules
	wantQuery(t, a, "message types", "select message_type_id, name, validation from sb.service_message_types where message_type_id < 65536 order by 1",
		"1|"+prefix+"ServiceBroker/Error|X", "2|"+prefix+"ServiceBroker/EndDialog|E", "4|"+prefix+"Notifications/EventNotification|X",
		"5|"+prefix+"ServiceBroker/DialogTimer|E", "14|DEFAULT|N")
	// Rules: R-015
	wantQuery(t, a, "contracts", "select name from sb.service_contracts where service_contract_id < 65536 order by 1",
		"DEFAULT", prefix+"Notifications/PostEventNotification")
	// Rules: R-016
	wantQuery(t, a, "services", `
select s.name, q.name, q.is_ms_shipped from sb.services as s join sb.service_queues as q on q.queue_id = s.service_queue_id
 where s.service_id < 65536`, prefix+"Notifications/EventNotificationService|EventNotificationErrorsQueue|t")
	// Rules: R-034
	wantQuery(t, a, "contract DEFAULT", `
select t.name, m.is_sent_by_initiator, m.is_sent_by_target
  from sb.service_contracts as c
  join sb.service_contract_message_usages as m on m.service_contract_id = c.service_contract_id
  join sb.service_message_types as t on t.message_type_id = m.message_type_id
 where c.name = 'DEFAULT'`, "DEFAULT|t|t")
	// Rules: R-011
	wantQuery(t, a, "first ids", `
select min(message_type_id) filter (where name = 'Note') from sb.service_message_types union all
select min(service_contract_id) filter (where name = 'Talk') from sb.service_contracts union all
select min(service_id) filter (where name = 'Left') from sb.services union all
select route_id from sb.routes`, "65536", "65536", "65536", "65536")
	wantQuery(t, a, "queues are marked", "select name, is_ms_shipped from sb.service_queues order by 1",
		"EventNotificationErrorsQueue|t", "LeftQueue|f", "RightQueue|f")
	// Rules: R-017
	wantQuery(t, a, "routes", "select name, remote_service_name, broker_instance, lifetime, address from sb.routes", "AutoCreatedLocal|NULL|NULL|NULL|LOCAL")
	a.Exec("select sb.alter_route('AutoCreatedLocal', lifetime => '1 day'), sb.drop_route('AutoCreatedLocal')")
}

func TestMessageTypes(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// Rules: R-018
	wantQuery(t, a, "validation left out", "select validation, validation_desc from sb.service_message_types where name = 'Note'", "N|NONE")
	// Rules: R-025
	a.Exec(`
create function public.yes(xml) returns boolean language sql return true;
select sb.create_message_type('E', 'EMPTY'), sb.create_message_type('X', 'WELL_FORMED_XML'), sb.create_message_type('V', 'VALID_XML', 'public.yes(xml)')`)
	wantQuery(t, a, "coding", "select name, validation, validation_desc from sb.service_message_types where length(name) = 1 order by 1", "E|E|EMPTY", "V|X|XML", "X|X|XML")

	// Rules: R-021
	a.Exec("select sb.create_contract('Xml', '{X,V}'), sb.alter_service('Right', add_contracts => '{Xml}')")
	left := a.Value("select sb.begin_dialog('Left', 'Right', 'Xml')")
	a.Exec("select sb.send($1::uuid, 'X', ''), sb.send($1::uuid, 'X'), sb.send($1::uuid, 'V', ''::bytea), sb.send($1::uuid, 'V', ''::text)", left)
	wantQuery(t, b, "nothing is well formed", "select message_type_name, validation, message_body from sb.receive('RightQueue')",
		"X|X|NULL", "X|X|NULL", "V|X|NULL", "V|X|NULL")

	// What is in a queue, and what waits, stays as it is when the validation changes; what is sent later does not pass.
	// Rules
	left, right := start(a, "queued")
	a.Exec(stopRight)
	say(a, left, "waiting")
	a.ExecError("22023", "select sb.alter_message_type('Note')")
	a.Exec("select sb.alter_message_type('Note', 'EMPTY')")
	a.Exec(startRight)
	want(t, "both arrive", take(b, "'RightQueue'"), "queued", "waiting")
	want(t, "CO", []string{stateOf(a, left), stateOf(a, right)}, "CO", "CO")
	say(a, left, "too late")
	want(t, "refused", take(a, "'LeftQueue'"), "Error -8430")
	end(a, left, right)
	a.Exec("select sb.alter_message_type('Note', 'NONE')")

	// A contract stands in the way of dropping a type, a message that is under way does not.
	// Rules: R-028
	a.ExecError("S3716", "select sb.drop_message_type('Note')")
	start(a, "last of its kind")
	a.Exec("select sb.alter_service('Left', drop_contracts => '{Talk}'), sb.alter_service('Right', drop_contracts => '{Talk}')")
	a.Exec("select sb.drop_contract('Talk')")
	a.Exec("select sb.drop_message_type('Note')")
	want(t, "what is left", take(b, "'RightQueue'"), "Error -8487", "last of its kind")
}

func TestContracts(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec(`
select sb.create_message_type('I'), sb.create_message_type('T'), sb.create_message_type('A')`)
	a.Exec(`
select sb.create_contract('Three', '{I}', '{T}', '{A}')`)
	// Rules
	usages := `
select t.name, u.is_sent_by_initiator, u.is_sent_by_target
  from sb.service_contract_message_usages as u
  join sb.service_contracts as c on c.service_contract_id = u.service_contract_id
  join sb.service_message_types as t on t.message_type_id = u.message_type_id
 where c.name = 'Three'
 order by 1`
	wantQuery(t, a, "directions", usages, "A|t|t", "I|t|f", "T|f|t")

	// A service without contracts may begin dialogs on any, and be the target of none.
	// Rules
	a.Exec("select sb.create_queue('BareQueue'), sb.create_service('Bare', 'BareQueue')")
	bare := a.Value("select sb.begin_dialog('Bare', 'Right', 'Talk')")
	say(a, bare, "from a service without contracts")
	want(t, "initiator", take(b, "'RightQueue'"), "from a service without contracts")
	refused := a.Value("select sb.begin_dialog('Left', 'Bare', 'Talk')")
	say(a, refused, "x")
	want(t, "target of none", take(a, "'LeftQueue'"), "Error -8408")
	byDefault := a.Value("select sb.begin_dialog('Left', 'Right')")
	a.Exec("select sb.send($1::uuid, message_type => 'DEFAULT', message_body => 'x')", byDefault)
	want(t, "DEFAULT is not accepted by itself", take(a, "'LeftQueue'"), "Error -8408")

	// Contracts added hold for new dialogs; those dropped hold on for old ones.
	// Rules: R-073
	a.Exec("select sb.alter_service('Right', add_contracts => '{DEFAULT,Three}', drop_contracts => '{Talk}')")
	byDefault = a.Value("select sb.begin_dialog('Left', 'Right')")
	a.Exec("select sb.send($1::uuid, 'DEFAULT', 'accepted now')", byDefault)
	want(t, "added", take(b, "'RightQueue'"), "accepted now")
	say(a, bare, "goes on")
	want(t, "dropped, old dialog", take(b, "'RightQueue'"), "goes on")
	dropped, _ := begin(a), ""
	say(a, dropped, "x")
	want(t, "dropped, new dialog", take(a, "'LeftQueue'"), "Error -8408")

	// Neither order nor number is prescribed.
	// Rules
	left := a.Value("select sb.begin_dialog('Left', 'Right', 'Three')")
	a.Exec("select sb.send($1::uuid, 'A', 'a')", left)
	right := a.Value("select conversation_handle from sb.conversation_endpoints where conversation_id = $1::uuid and not is_initiator", left)
	a.Exec("select sb.send($1::uuid, 'T', 't1'), sb.send($1::uuid, 'A', 'a1'), sb.send($1::uuid, 'T', 't2')", right) // nothing received yet
	a.Exec("select sb.send($1::uuid, 'I', 'i1'), sb.send($1::uuid, 'I', 'i2'), sb.send($1::uuid, 'A', 'a2')", left)
	want(t, "target", take(b, "'RightQueue'"), "a", "i1", "i2", "a2")
	want(t, "initiator", take(a, "'LeftQueue'"), "t1", "a1", "t2")

	// Rules: R-038
	a.Exec("select sb.create_contract('Free', '{I}')")
	a.Exec("select sb.alter_service('Bare', add_contracts => '{Free}')")
	a.ExecError("S3716", "select sb.drop_contract('Free')")
	a.Exec("select sb.alter_service('Bare', drop_contracts => '{Free}'), sb.create_broker_priority('p', 'Free')")
	a.ExecError("S3716", "select sb.drop_contract('Free')")
	a.Exec("select sb.drop_broker_priority('p'), sb.drop_contract('Free')")
}

func TestQueues(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	// Rules: R-040
	const columns = "is_receive_enabled, is_enqueue_enabled, is_retention_enabled, is_poison_message_handling_enabled, is_activation_enabled, activation_procedure, max_readers, execute_as"
	wantQuery(t, a, "defaults", "select "+columns+" from sb.service_queues where name = 'LeftQueue'", "t|t|f|t|f|NULL|NULL|NULL")
	a.Exec("create function public.step() returns void language sql as ''")
	a.Exec("select sb.create_queue('Active', activation_procedure => 'public.step')")
	wantQuery(t, a, "defaults of activation", "select "+columns+" from sb.service_queues where name = 'Active'", "t|t|f|t|t|public.step|1|"+db.Owner)
	// Rules
	for _, limit := range []string{"0", "32767"} {
		a.Exec("select sb.alter_queue('Active', max_queue_readers => $1::integer)", limit)
		wantQuery(t, a, "limit", "select max_readers from sb.service_queues where name = 'Active'", limit)
	}
	for _, limit := range []string{"-1", "32768"} {
		a.ExecError("22023", "select sb.alter_queue('Active', max_queue_readers => $1::integer)", limit)
	}
	// Nobody looks whether the role may call the procedure.
	// Rules: R-044
	role := db.CreateRole(t, "runner")
	if _, err := db.Superuser(t).Exec(t.Context(), "grant "+role+" to "+db.Owner); err != nil {
		t.Fatal(err)
	}
	a.Exec("revoke all on function public.step from public")
	a.Exec("select sb.alter_queue('Active', execute_as => $1)", role)
	want(t, "may it", a.Query("select execute_as, has_function_privilege(execute_as, 'public.step()', 'execute') from sb.service_queues where name = 'Active'"), role+"|f")

	// Rules: R-057
	start(a, "x")
	for _, sql := range []string{
		"insert into sb.queue_messages (queue_name) values ('LeftQueue')", "update sb.queue_messages set message_body = null", "delete from sb.queue_messages",
	} {
		a.ExecError("55000", sql)
	}
	a.ExecError("42809", "truncate sb.queue_messages")
	a.ExecError("42809", "create index on sb.queue_messages (queue_name)")

	// Rules
	a.Exec("select sb.create_service('Right2', 'RightQueue', '{Talk}'), sb.create_service('Right3', 'RightQueue', '{Talk}')")
	for _, service := range []string{"Right2", "Right3"} {
		say(a, a.Value("select sb.begin_dialog('Left', $1, 'Talk')", service), "to "+service)
	}
	got := []string{}
	for range 3 {
		got = append(got, b.Query("select service_name, sb.body_text(message_body) from sb.receive('RightQueue')")...)
	}
	want(t, "one queue, three services", got, "Right|x", "Right2|to Right2", "Right3|to Right3")
	wantQuery(t, a, "one queue each", "select count(*) = count(distinct service_id) from sb.service_queue_usages", "t")
	a.ExecError("S3716", "select sb.drop_queue('RightQueue')")
}

// What happens to conversations when their service is altered or dropped.
func TestServices(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	// Rules: R-074
	left, right := start(a, "one")
	a.Exec("select sb.create_queue('OtherQueue'), sb.alter_service('Right', 'OtherQueue')")
	say(a, left, "two")
	want(t, "the peer hears nothing of it", take(a, "'LeftQueue'"))
	want(t, "nor does the side that moved", take(b, "'OtherQueue'"), "one", "two")
	want(t, "states", []string{stateOf(a, left), stateOf(a, right)}, "CO", "CO")
	a.Exec("select sb.alter_service('Right', 'RightQueue')")

	// Whoever names a conversation or a group of it gets an error, and so does who waits for a message there.
	// Rules
	group := groupOf(a, right)
	named := map[string]string{"S8426": "for_conversation => '" + right + "'", "S8436": "for_group => '" + group + "'"}
	waiting := map[string]<-chan error{}
	for code, argument := range named {
		waiter := db.Session(t, "waiter "+code)
		waiting[code] = waiter.GoExec("select * from sb.receive('RightQueue', " + argument + ", timeout => '-1 s')")
		pgtest.Eventually(t, time.Minute, func() bool {
			return a.Value("select coalesce(wait_event = 'PgSleep', false) from pg_stat_activity where pid = $1::integer", waiter.PID()) == "t"
		})
	}
	a.Exec("select sb.drop_service('Right')")
	for code, argument := range named {
		if err := wait(t, waiting[code]); pgtest.SQLState(err) != code {
			t.Errorf("who waits with %s: %v", argument, err)
		}
		b.ExecError(code, "select * from sb.receive('RightQueue', "+argument+")")
	}
	want(t, "its messages are gone", take(b, "'RightQueue'"))
	want(t, "told", take(a, "'LeftQueue'"), "Error -8470")
	end(a, left)
	// Rules: R-075
	a.Exec("select sb.create_broker_priority('p', local_service_name => 'Left')")
	a.ExecError("S3716", "select sb.drop_service('Left')")
	a.Exec("select sb.drop_broker_priority('p'), sb.drop_service('Left')")
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	db, a, _ := newTalk(t)
	// Rules
	a.Exec("select sb.create_route('all', 'LOCAL'), sb.create_route('one', 'remote://there', 'Far', 'instance', '1 hour', 'remote://mirror')")
	wantQuery(t, a, "wildcards are null", `
select name, remote_service_name, broker_instance, lifetime > now(), address, mirror_address from sb.routes where name in ('all', 'one') order by 1`,
		"all|NULL|NULL|NULL|LOCAL|NULL", "one|Far|instance|t|remote://there|remote://mirror")
	// Nothing that is there can be taken away by altering.
	// Rules: R-085
	a.Exec("select sb.alter_route('one', service_name => null, broker_instance => null, lifetime => null, address => 'remote://elsewhere')")
	a.ExecError("S9659", "select sb.alter_route('one', service_name => '')")
	wantQuery(t, a, "altered", "select remote_service_name, broker_instance, lifetime > now(), address from sb.routes where name = 'one'",
		"Far|instance|t|remote://elsewhere")
	// Rules: R-088
	a.Exec("select sb.create_route('twin', 'remote://elsewhere', 'Far', 'instance')")
	// Rules: R-089
	admin := db.CreateRole(t, "admin")
	a.Exec("select sb.grant_admin($1)", admin)
	s := db.SessionAs(t, "admin", admin)
	s.Exec("select sb.alter_route('twin', lifetime => '1 day')")
	for _, sql := range []string{"insert into sb.routes (name) values ('x')", "update sb.routes set address = 'LOCAL'", "delete from sb.routes"} {
		s.ExecError("42501", sql)
	}
	a.Exec("select sb.drop_route('twin'), sb.drop_route('one'), sb.drop_route('all')")
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	// Rules
	a.Exec("select sb.create_broker_priority('p')")
	const show = `
select c.name, s.name, p.remote_service_name, p.priority
  from sb.conversation_priorities as p
  left join sb.service_contracts as c on c.service_contract_id = p.service_contract_id
  left join sb.services as s on s.service_id = p.local_service_id
 where p.name = 'p'`
	wantQuery(t, a, "defaults", show, "NULL|NULL|NULL|5")
	a.ExecError("22023", "select sb.alter_broker_priority('p')")
	a.Exec("select sb.alter_broker_priority('p', priority_level => 10::smallint)")
	a.Exec("select sb.alter_broker_priority('p', 'Talk')")
	a.Exec("select sb.alter_broker_priority('p', remote_service_name => 'Far')")
	wantQuery(t, a, "what is not named stays", show, "Talk|NULL|Far|10")
	for _, level := range []string{"0", "11", "-1"} {
		a.ExecError("22023", "select sb.alter_broker_priority('p', priority_level => $1::smallint)", level)
	}
	a.Exec("select sb.drop_broker_priority('p')")
	a.ExecError("42704", "select sb.drop_broker_priority('p')")

	// Contract and local service have to exist and are kept by id; the far one is text, compared byte for byte.
	// Rules: R-097
	a.ExecError("42704", "select sb.create_broker_priority('p', 'none')")
	a.ExecError("S8423", "select sb.create_broker_priority('p', local_service_name => 'none')")
	a.Exec("select sb.create_broker_priority('p', remote_service_name => 'right', priority_level => 9::smallint)")
	priorityOf := func(left string) string {
		return a.Value("select string_agg(priority::text, ' ' order by is_initiator desc) from sb.conversation_endpoints where conversation_id = $1::uuid", left)
	}
	left, right := start(a, "x")
	want(t, "case counts", []string{priorityOf(left)}, "5 5")
	a.Exec("select sb.end_conversation($1::uuid, cleanup => true), sb.end_conversation($2::uuid, cleanup => true), sb.drop_broker_priority('p')", left, right)

	// The most specific one that matches wins. Each is created in turn, from the least specific on, and each in the
	// other direction is a decoy that matches the target's side only.
	// Rules
	for i, c := range []struct{ arguments, both string }{
		{"null, null, null", "1 1"},
		{"null, null, 'Right'", "2 1"},
		{"null, 'Left', null", "3 1"},
		{"null, 'Left', 'Right'", "4 1"},
		{"'Talk', null, null", "5 5"},
		{"'Talk', null, 'Right'", "6 5"},
		{"'Talk', 'Left', null", "7 5"},
		{"'Talk', 'Left', 'Right'", "8 5"},
		{"'Talk', 'Right', 'Left'", "8 9"}, // of the target, its local service is Right
	} {
		a.Exec("select sb.create_broker_priority('p' || $2::integer, "+c.arguments+", priority_level => $1::smallint)", i+1, i)
		left, right := start(a, "x")
		want(t, c.arguments, []string{priorityOf(left)}, c.both)
		a.Exec("select sb.end_conversation($1::uuid, cleanup => true), sb.end_conversation($2::uuid, cleanup => true)", left, right)
	}
	left, right = start(a, "kept")
	// Rules
	for i := range 9 {
		a.Exec("select sb.drop_broker_priority('p' || $1::integer)", i)
	}
	want(t, "dropped", []string{priorityOf(left)}, "8 9")
	want(t, "still received", take(b, "'RightQueue'"), "kept")
	end(a, left, right)

	// Nothing can be granted on a priority; only admins create, alter, drop and see them.
	// Rules: R-107
	reader := db.CreateRole(t, "reader")
	a.Exec("select sb.create_broker_priority('p'), sb.grant_receive('LeftQueue', $1), sb.grant_references('Talk', $1)", reader)
	r := db.SessionAs(t, "reader", reader)
	for _, call := range []string{"create_broker_priority('q')", "alter_broker_priority('p', priority_level => 1::smallint)", "drop_broker_priority('p')"} {
		r.ExecError("42501", "select sb."+call)
	}
	wantQuery(t, r, "seen", "select * from sb.conversation_priorities")
	a.ExecError("22023", "select sb.alter_authorization('broker_priority', 'p', $1)", reader)
	a.Exec("select sb.drop_broker_priority('p')")

	// A group is as urgent as the most urgent of its conversations that have something to receive.
	// Rules: R-105
	a.Exec("select sb.create_contract('Urgent', sent_by_any => '{Note}'), sb.alter_service('Right', add_contracts => '{Urgent}')")
	a.Exec("select sb.create_broker_priority('high', 'Urgent', priority_level => 9::smallint), sb.create_broker_priority('low', 'Talk', 'Right', priority_level => 2::smallint)")
	urgent := a.Value("select sb.begin_dialog('Left', 'Right', 'Urgent')")
	say(a, urgent, "x")
	urgentRight := a.Value("select conversation_handle from sb.conversation_endpoints where conversation_id = $1::uuid and not is_initiator", urgent)
	take(b, "'RightQueue'")
	lowLeft, low := start(a, "low, in the group of the silent urgent one")
	a.Exec("select sb.move_conversation($1::uuid, $2::uuid)", low, groupOf(a, urgentRight))
	a.Exec("select sb.alter_service('Right', add_contracts => '{DEFAULT}')")
	a.Exec("select sb.send(sb.begin_dialog('Left', 'Right'), 'DEFAULT', 'middle')")
	want(t, "the urgent one has nothing", take(b, "'RightQueue', 1"), "middle")
	a.Exec("select sb.send(sb.begin_dialog('Left', 'Right'), 'DEFAULT', 'middle again')")
	say(a, urgent, "urgent")
	b.Begin()
	want(t, "the urgent one has something", take(b, "'RightQueue'"), "urgent", "low, in the group of the silent urgent one")

	// While somebody is busy with a group, nothing of it gets to others, however urgent; who takes one at a time gets the
	// urgent message next.
	// Rules: R-192
	say(a, urgent, "very urgent")
	want(t, "another reader", take(a, "'RightQueue'"), "middle again")
	want(t, "another reader", take(a, "'RightQueue'"))
	b.Commit()
	say(a, lowLeft, "low 1", "low 2")
	want(t, "one at a time", append(take(b, "'RightQueue', 1"), take(b, "'RightQueue', 1")...), "very urgent", "low 1")
	say(a, urgent, "in between")
	want(t, "one at a time", append(take(b, "'RightQueue', 1"), take(b, "'RightQueue', 1")...), "in between", "low 2")

	// The priority is shown whether it is honoured or not; delivery goes by it only when the option says so. It counts
	// from then on, for what waits already too.
	// Rules
	a.Exec(stopRight)
	var first string
	for range 6 { // by handle, which is random: five dialogs of low priority and an urgent one
		first = begin(a)
		say(a, first, "low")
	}
	say(a, urgent, "urgent")
	wantQuery(t, a, "shown", "select distinct priority from sb.transmission_queue order by 1", "5", "9")
	wantQuery(t, a, "not honoured", "select is_honor_broker_priority_on from sb.broker", "f")
	a.Exec("select sb.set_option('honor_broker_priority', 'on')")
	a.Exec(startRight)
	wantQuery(t, a, "first to be delivered", "select sb.body_text(message_body) from sb.queue_messages where queue_name = 'RightQueue' order by queuing_order limit 1", "urgent")
}

func TestEvents(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	const contract = "https://schemas.microsoft.com/SQL/Notifications/PostEventNotification"
	instance := a.Value("select broker_instance from sb.broker")
	a.Exec(`
select sb.create_queue('Watch1'), sb.create_queue('Watch2'),
       sb.create_service('Watcher1', 'Watch1', '{` + contract + `}'), sb.create_service('Watcher2', 'Watch2', '{` + contract + `}')`)
	// The same name on another queue is another notification; the instance may be named in both ways.
	// Rules
	a.Exec("select sb.create_event_notification('n', 'RightQueue', 'QUEUE_ACTIVATION', 'Watcher1', 'CURRENT database')")
	a.Exec("select sb.create_event_notification('m', 'RightQueue', 'QUEUE_ACTIVATION', 'Watcher2', $1)", instance)
	a.Exec("select sb.create_event_notification('n', 'LeftQueue', 'QUEUE_ACTIVATION', 'Watcher1')")
	a.ExecError("42710", "select sb.create_event_notification('n', 'RightQueue', 'BROKER_QUEUE_DISABLED', 'Watcher1')")
	a.ExecError("22023", "select sb.create_event_notification('x', 'RightQueue', 'BROKER_CONVERSATION', 'Watcher1')")

	// What is rolled back sends nothing.
	// Rules: R-113
	a.Begin()
	start(a, "never")
	a.Rollback()
	want(t, "rolled back", append(take(b, "'Watch1'"), take(b, "'Watch2'")...))

	// Each of several notifications sends, on a long-lived dialog of its own from the system's service, which the
	// catalog shows as such.
	// Rules
	left, _ := start(a, "one")
	for _, queue := range []string{"Watch1", "Watch2"} {
		want(t, queue, b.Query("select sb.body_text(message_body) ~ '<ObjectName>RightQueue</ObjectName>', sb.body_text(message_body) ~ '<EventType>QUEUE_ACTIVATION</EventType>' from sb.receive($1)", queue), "t|t")
	}
	wantQuery(t, a, "dialogs", `
select count(*), bool_and(is_system), bool_and(lifetime is null) from sb.conversation_endpoints where is_initiator and service_id < 65536`, "2|t|t")
	wantQuery(t, a, "groups", "select is_system, count(*) from sb.conversation_groups group by 1 order by 1", "f|4", "t|2")

	// NOTIFIED until somebody receives, RECEIVES_OCCURRING until somebody finds nothing; then the next one is news.
	// Rules
	state := "select state from sb.dm_broker_queue_monitors where queue_name = 'RightQueue'"
	wantQuery(t, a, "after the event", state, "NOTIFIED")
	say(a, left, "two")
	want(t, "no second event", append(take(b, "'Watch1'"), take(b, "'Watch2'")...))
	take(b, "'RightQueue', 1")
	wantQuery(t, a, "somebody receives", state, "RECEIVES_OCCURRING")
	take(b, "'RightQueue'")
	wantQuery(t, a, "it got something", state, "RECEIVES_OCCURRING")
	take(b, "'RightQueue'")
	wantQuery(t, a, "it got nothing", state, "INACTIVE")
	say(a, left, "three")
	wantQuery(t, a, "after the next event", state, "NOTIFIED")
	wantQuery(t, b, "next event, on the same dialog", "select message_sequence_number, message_type_id from sb.receive('Watch1')", "1|4")

	// While there is something to receive the event comes again, a minute after the last.
	// Rules
	a.Exec("select sb.maintain()")
	want(t, "not yet", take(b, "'Watch1'"))
	a.Exec("update sb_internal.queue_monitor set last_activated_time = last_activated_time - interval '61 s'")
	a.Exec("select sb.maintain()")
	wantQuery(t, b, "again", "select message_sequence_number, message_type_id from sb.receive('Watch1')", "2|4")
	a.Exec("select sb.maintain()")
	want(t, "once", take(b, "'Watch1'"))

	// A subscriber that does not take the contract, or ends the dialog, ends its notification.
	// Rules
	a.Exec("select sb.create_service('Deaf', 'Watch1'), sb.create_event_notification('deaf', 'LeftQueue', 'QUEUE_ACTIVATION', 'Deaf')")
	b.Exec("select sb.end_conversation((select e.conversation_handle from sb.conversation_endpoints as e join sb.services as s on s.service_id = e.service_id where s.name = 'Watcher2'))")
	names := func() []string {
		return a.Query("select name || ' ' || to_service from sb_internal.event_notification order by 1")
	}
	b.Exec("listen sb_events")
	for range 2 {
		take(b, "'LeftQueue'")
		take(b, "'RightQueue'")
		take(b, "'RightQueue'")
		say(a, left, "x")
		say(b, a.Value("select e.conversation_handle from sb.conversation_endpoints as e where e.conversation_id = $1::uuid and not e.is_initiator", left), "x")
		take(b, "'LeftQueue'")
	}
	want(t, "left", names(), "n Watcher1", "n Watcher1")
	for dropped := 0; dropped < 2; { // and the operator is told
		n, err := b.Conn.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(n.Payload, "event_notification_dropped") {
			dropped++
		}
	}

	// Only admins create them, and the owner of a queue may not.
	// Rules: R-116
	role := db.CreateRole(t, "queue_owner")
	if _, err := db.Superuser(t).Exec(t.Context(), "grant "+role+" to "+db.Owner); err != nil {
		t.Fatal(err)
	}
	a.Exec("select sb.alter_authorization('queue', 'Watch2', $1)", role)
	db.SessionAs(t, "queue owner", role).ExecError("42501", "select sb.create_event_notification('x', 'Watch2', 'QUEUE_ACTIVATION', 'Watcher1')")
}

func TestDatabaseSwitches(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	// Rules: R-119
	left, _ := start(a, "before")
	a.Exec("select sb.disable_broker()")
	a.Exec("select sb.create_queue('Made'), sb.create_service('Made', 'Made', '{Talk}'), sb.alter_queue('Made', retention => true)")
	say(a, left, "to here")
	say(a, a.Value("select sb.begin_dialog('Left', 'Made', 'Talk')"), "to a service made meanwhile")
	wantQuery(t, a, "all of it waits", "select to_service_name from sb.transmission_queue order by 1", "Made", "Right")
	a.Exec("select sb.enable_broker()")
	want(t, "delivered", append(take(b, "'RightQueue'"), take(b, "'Made'")...), "before", "to here", "to a service made meanwhile")

	// A copy keeps the instance, and stays enabled; a fresh installation has one of its own.
	// Rules
	instance := func(db *pgtest.DB) []string {
		return db.Session(t, "reader").Query("select broker_instance, is_broker_enabled from sb.broker")
	}
	want(t, "two copies", instance(db), instance(pgtest.New(t))...)
	fresh := pgtest.Empty(t)
	install(t, fresh)
	if slices.Equal(instance(fresh), instance(db)) {
		t.Error("two installations have the same broker instance")
	}
	before := a.Value("select broker_instance from sb.broker")
	a.Exec("select sb.disable_broker(), sb.enable_broker()")
	wantQuery(t, a, "kept", "select broker_instance from sb.broker", before)
	a.Exec("select sb.new_broker()")
	wantQuery(t, a, "new", "select broker_instance <> '"+before+"', is_broker_enabled from sb.broker", "t|t")
}

// install runs the migrations in an empty database.
func install(t *testing.T, db *pgtest.DB) {
	t.Helper()
	conn := db.Conn(t)
	_, err := conn.Exec(t.Context(), "create schema sb_internal")
	files, globErr := fs.Glob(migrations.FS, "*.up.sql")
	if err = errors.Join(err, globErr); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		sql, err := fs.ReadFile(migrations.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.PgConn().Exec(t.Context(), string(sql)).Close(); err != nil {
			t.Fatal(file, err)
		}
	}
}
