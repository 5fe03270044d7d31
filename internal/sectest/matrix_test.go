package sectest

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// What a verb needs, in the words of docs/security.md.
const (
	anyRight  = "any right"
	receive   = "RECEIVE on the queue"
	begin     = "RECEIVE on the queue, REFERENCES on the contract"
	ownership = "ownership of the object"
	admin     = "admin"
)

// matrix has a call for each public function, on the objects of [newTwoShops], that succeeds for whoever has what it
// needs. A function may be there twice.
var matrix = []struct{ function, needs, call string }{
	{"body_json(bytea)", anyRight, `select sb.body_json('1')`},
	{"body_text(bytea)", anyRight, `select sb.body_text('1')`},
	{"body_xml(bytea)", anyRight, `select sb.body_xml('1')`},
	{"error_code(bytea)", anyRight, `select sb.error_code('1')`},
	{"error_description(bytea)", anyRight, `select sb.error_description('1')`},
	{"create_state_table(text,text,boolean,boolean)", anyRight, `select sb.create_state_table('room.made', '', drop_on_end => false)`},
	{"drop_state_table(text,boolean)", anyRight, `do 'begin perform sb.create_state_table(''room.made'', '''', false); perform sb.drop_state_table(''room.made''); end'`},
	{"create_state_table(text,text,boolean,boolean)", admin, `select sb.create_state_table('room.made', 'x integer')`},

	{"receive(text,integer,uuid,uuid,interval)", receive, `select * from sb.receive('Mine')`},
	{"receive(text,integer,uuid,uuid,interval)", receive, `select * from sb.receive('Mine', for_conversation => '{handle}')`},
	{"receive(text,integer,uuid,uuid,interval)", receive, `select * from sb.receive('Mine', for_group => '{group}')`},
	{"get_conversation_group(text,interval)", receive, `select sb.get_conversation_group('Mine')`},
	{"send(uuid,text)", receive, `select sb.send('{handle}', 'Note')`},
	{"send(uuid,text,bytea)", receive, `select sb.send('{handle}', 'Note', 'x'::bytea)`},
	{"send(uuid,text,text)", receive, `select sb.send('{handle}', 'Note', 'x'::text)`},
	{"send(uuid,text,json)", receive, `select sb.send('{handle}', 'Note', '1'::json)`},
	{"send(uuid,text,jsonb)", receive, `select sb.send('{handle}', 'Note', '1'::jsonb)`},
	{"send(uuid,text,xml)", receive, `select sb.send('{handle}', 'Note', '<a/>'::xml)`},
	{"send(uuid,text,bytea)", receive, `select sb.send('{fresh}', 'Note', 'first'::bytea)`},
	{"send(uuid,text,bytea)", receive, `select sb.send('{fresh}', 'Checked', '1'::bytea)`},
	{"send_batch(uuid,text,bytea[])", receive, `select sb.send_batch('{handle}', 'Note', '{a,b}')`},
	{"multicast(uuid[],text,bytea)", receive, `select sb.multicast('{{handle},{fresh}}', 'Note', 'x')`},
	{"move_conversation(uuid,uuid)", receive, `select sb.move_conversation('{handle}', '{freshGroup}')`},
	{"end_conversation(uuid,integer,text,boolean)", receive, `select sb.end_conversation('{handle}')`},
	{"end_conversation(uuid,integer,text,boolean)", receive, `select sb.end_conversation('{handle}', 1, 'x')`},
	{"end_conversation(uuid,integer,text,boolean)", receive, `select sb.end_conversation('{handle}', cleanup => true)`},
	{"begin_conversation_timer(uuid,interval)", receive, `select sb.begin_conversation_timer('{handle}', '1 h')`},
	{"cancel_conversation_timer(uuid)", receive, `select sb.cancel_conversation_timer('{handle}')`},
	{"get_transmission_status(uuid)", receive, `select sb.get_transmission_status('{handle}')`},
	{"get_state(uuid)", receive, `select sb.get_state('{group}')`},
	{"set_state(uuid,jsonb)", receive, `select sb.set_state('{group}', '1')`},
	{"start_waiting(text)", receive, `do 'begin perform sb.start_waiting(''Mine''); perform sb.stop_waiting(''Mine''); end'`},
	{"stop_waiting(text)", receive, `do 'begin perform sb.start_waiting(''Mine''); perform sb.stop_waiting(''Mine''); end'`},
	{"begin_dialog(text,text,text,text,uuid,uuid,interval,boolean)", begin, `select sb.begin_dialog('MyShop', 'OtherShop', 'Deal')`},
	{"begin_dialog(text,text,text,text,uuid,uuid,interval,boolean)", begin, `select sb.begin_dialog('MyShop', 'OtherShop', 'Deal', related_conversation => '{handle}')`},
	{"begin_dialog(text,text,text,text,uuid,uuid,interval,boolean)", begin, `select sb.begin_dialog('MyShop', 'OtherShop', 'Deal', related_conversation_group => '{group}')`},

	{"alter_message_type(text,text,regprocedure,jsonb)", ownership, `select sb.alter_message_type('SpareType', 'EMPTY')`},
	{"alter_queue(text,boolean,boolean,text,integer,boolean,name,boolean,boolean)", ownership, `select sb.alter_queue('Mine', enabled => false)`},
	{"alter_route(text,text,text,text,interval,text)", ownership, `select sb.alter_route('MyRoute', 'LOCAL')`},
	{"alter_service(text,text,text[],text[])", ownership, `select sb.alter_service('SpareShop', 'Spare', '{SpareContract}')`},
	{"alter_authorization(text,text,name)", ownership, `select sb.alter_authorization('route', 'MyRoute', current_user)`},
	{"drop_message_type(text,boolean)", ownership, `select sb.drop_message_type('SpareType')`},
	{"drop_contract(text,boolean)", ownership, `select sb.drop_contract('SpareContract')`},
	{"drop_queue(text,boolean)", ownership, `select sb.drop_queue('Spare')`},
	{"drop_service(text,boolean)", ownership, `select sb.drop_service('SpareShop')`},
	{"drop_route(text,boolean)", ownership, `select sb.drop_route('MyRoute')`},
	{"drop_event_notification(text,text,boolean)", ownership, `select sb.drop_event_notification('Event', 'Mine')`},
	{"grant_receive(text,name)", ownership, `select sb.grant_receive('Mine', '{stranger}')`},
	{"grant_references(text,name)", ownership, `select sb.grant_references('Deal', '{stranger}')`},
	{"grant_send(text,name)", ownership, `select sb.grant_send('MyShop', '{stranger}')`},
	{"revoke_receive(text,name)", ownership, `select sb.revoke_receive('Mine', '{stranger}')`},
	{"revoke_references(text,name)", ownership, `select sb.revoke_references('Deal', '{stranger}')`},
	{"revoke_send(text,name)", ownership, `select sb.revoke_send('MyShop', '{stranger}')`},

	{"create_message_type(text,text,regprocedure,jsonb,boolean)", admin, `select sb.create_message_type('New')`},
	{"create_message_type(text,text,regprocedure,jsonb,boolean)", admin, `select sb.create_message_type('New', 'VALID_JSON', 'room.yes(jsonb)')`},
	{"alter_message_type(text,text,regprocedure,jsonb)", admin, `select sb.alter_message_type('SpareType', 'VALID_JSON', 'room.yes(jsonb)')`},
	{"create_contract(text,text[],text[],text[],boolean)", admin, `select sb.create_contract('New', '{Note}')`},
	{"create_queue(text,boolean,boolean,text,integer,boolean,name,boolean,boolean)", admin, `select sb.create_queue('New')`},
	{"create_service(text,text,text[],boolean)", admin, `select sb.create_service('New', 'Mine')`},
	{"create_route(text,text,text,text,interval,text,boolean)", admin, `select sb.create_route('New', 'LOCAL')`},
	{"create_broker_priority(text,text,text,text,integer,boolean)", admin, `select sb.create_broker_priority('New', 'Deal')`},
	{"alter_broker_priority(text,text,text,text,integer)", admin, `select sb.alter_broker_priority('Priority', priority_level => 7)`},
	{"drop_broker_priority(text,boolean)", admin, `select sb.drop_broker_priority('Priority')`},
	{"create_event_notification(text,text,text,text,text,boolean)", admin, `select sb.create_event_notification('New', 'Mine', 'BROKER_QUEUE_DISABLED', 'MyShop')`},
	{"grant_admin(name)", admin, `select sb.grant_admin('{stranger}')`},
	{"revoke_admin(name)", admin, `select sb.revoke_admin('{stranger}')`},
	{"set_option(text,text)", admin, `select sb.set_option('validate_on_send', 'on')`},
	{"enable_broker()", admin, `select sb.enable_broker()`},
	{"disable_broker()", admin, `select sb.disable_broker()`},
	{"new_broker()", admin, `select sb.new_broker()`},
	{"error_broker_conversations()", admin, `select sb.error_broker_conversations()`},
	{"deliver(text)", admin, `select sb.deliver('Mine')`},
	{"maintain()", admin, `select sb.maintain()`},
	{"after_restore()", admin, `select sb.after_restore()`},
	{"activation_plan(text[])", admin, `select * from sb.activation_plan('{Mine}')`},
	{"activation_scan(integer[])", admin, `select * from sb.activation_scan('{{queue}}')`},
	{"probe_queue(integer)", admin, `select * from sb.probe_queue({queue})`},
	{"queue_writers()", admin, `select sb.queue_writers()`},
	{"take_reader(integer,integer,boolean)", admin, `select sb.take_reader({queue})`},
	{"excuse_reader(integer,integer)", admin, `select sb.excuse_reader({queue}, pg_backend_pid())`},
	{"report_activation(text,jsonb,jsonb)", admin, `select sb.report_activation('x', '[]', '[]')`},
	{"back_off_group(uuid)", admin, `select sb.back_off_group('{group}')`},
	{"clear_back_off(uuid)", admin, `select sb.clear_back_off('{group}')`},
}

// reading has a query for each view that tells the rows apart by the shop they belong to, and what of it is seen by
// the owner of Mine and MyShop, who may send to OtherShop, by who may receive from Mine and use Deal, by who may only send to MyShop, and by who
// only owns Other. Whoever has no right reads nothing, an admin all.
var reading = []struct{ view, rows, all, owner, receiver, sender, other string }{
	{"broker", "select count(*)", "1", "1", "1", "1", "1"},
	{"options", "select count(*) > 3", "true", "true", "true", "true", "true"},
	{"conversation_endpoints", "select distinct v.far_service", "MyShop Nowhere OtherShop", "Nowhere OtherShop", "Nowhere OtherShop", "", "MyShop Nowhere"},
	{"conversation_groups", "select distinct (select s.name from sb.services as s where s.service_id = v.service_id)", "MyShop OtherShop", "MyShop", "MyShop", "", "OtherShop"},
	{"conversation_priorities", "select v.name", "Priority", "", "", "", ""},
	{"conversation_state", "select v.state", `"mine" "other"`, `"mine"`, `"mine"`, "", `"other"`},
	{"dm_broker_activated_tasks", "select v.queue_name", "Mine Other", "Mine", "Mine", "", "Other"},
	{"dm_broker_queue_monitors", "select v.queue_name", "Mine Other", "Mine", "Mine", "", "Other"},
	{"queue_messages", "select distinct v.queue_name", "Mine Other", "Mine", "Mine", "", "Other"},
	{"queue_statistics", "select v.queue_name", "Mine Other Spare", "Mine Spare", "Mine", "", "Other"},
	{"routes", "select v.name", "AutoCreatedLocal MyRoute", "MyRoute", "", "", ""},
	{"service_contracts", "select v.name", "Check Deal SpareContract", "Check Deal SpareContract", "Check Deal", "", ""},
	{"service_contract_message_usages", "select distinct c.name", "Check Deal SpareContract", "Check Deal SpareContract", "Check Deal", "", ""},
	{"service_contract_usages", "select distinct s.name", "MyShop OtherShop", "MyShop OtherShop", "MyShop", "MyShop", "OtherShop"},
	{"service_message_types", "select v.name", "Checked Note SpareType", "Checked Note SpareType", "Checked Note", "", ""},
	{"service_queues", "select v.name", "Mine Other Spare", "Mine Spare", "Mine", "", "Other"},
	{"service_queue_usages", "select s.name", "MyShop OtherShop SpareShop", "MyShop OtherShop SpareShop", "MyShop SpareShop", "MyShop", "OtherShop"},
	{"services", "select v.name", "MyShop OtherShop SpareShop", "MyShop OtherShop SpareShop", "MyShop SpareShop", "MyShop", "OtherShop"},
	{"transmission_queue", "select v.from_service_name", "MyShop OtherShop", "MyShop", "MyShop", "", "OtherShop"},
}

// query reads a row of reading, without what belongs to the system, as one value.
func query(view, rows string) string {
	from := "sb." + view + " as v"
	switch {
	case strings.Contains(rows, "s.name") && !strings.Contains(rows, "from"):
		from += " join sb.services as s on s.service_id = v.service_id"
	case strings.Contains(rows, "c.name"):
		from += " join sb.service_contracts as c on c.service_contract_id = v.service_contract_id"
	}
	return fmt.Sprintf(`
select coalesce(string_agg(x.key::text, ' ' order by x.key::text collate "C"), '')
  from (%s from %s) as x (key)
 where x.key::text !~ '^(DEFAULT|https?://.*|EventNotificationErrorsQueue)$'`, rows, from)
}

// twoShops is two applications: queue Mine with services MyShop and SpareShop, and queue Other with OtherShop.
type twoShops struct {
	*pgtest.DB
	owner *pgtest.Session
	fill  *strings.Replacer // handles and names for the calls of the matrix

	// Roles: boss owns what is Mine; reader and group clerks may receive from Mine and use the contracts; member
	// inherits from clerks, aloof is a member that does not; sender may send to MyShop, other owns
	// Other, and so may execute what owners may.
	admin, deputy, boss, reader, clerks, member, aloof, sender, other, stranger string
}

func newTwoShops(t *testing.T) *twoShops {
	t.Helper()
	db := pgtest.New(t)
	s := &twoShops{DB: db, owner: db.Session(t, "owner")}
	admins := db.CreateRole(t, "admins")
	for name, role := range map[string]*string{
		"admin": &s.admin, "deputy": &s.deputy, "boss": &s.boss, "reader": &s.reader, "clerks": &s.clerks, "member": &s.member,
		"aloof": &s.aloof, "sender": &s.sender, "other": &s.other, "stranger": &s.stranger,
	} {
		*role = db.CreateRole(t, name)
	}
	superuser(t, db, fmt.Sprintf(`
alter role %[1]q noinherit;
grant %[2]q to %[1]q, %[3]q;
grant %[4]q to %[5]q;
grant %[6]q, %[8]q to %[7]q;
create schema room;
grant all on schema room to public`, s.aloof, s.clerks, s.member, admins, s.deputy, s.boss, db.Owner, s.other))
	o := s.owner
	o.Exec(`
create function room.yes(jsonb) returns boolean language sql return true;
create procedure room.step() language sql as '';
select sb.create_message_type('Note'), sb.create_message_type('Checked', 'VALID_JSON', 'room.yes(jsonb)');
select sb.create_message_type('SpareType');
select sb.create_contract('Deal', sent_by_any => '{Note,Checked}'), sb.create_contract('Check', sent_by_any => '{Note}');
select sb.create_contract('SpareContract', '{Note}');
select sb.create_queue(q.name, poison_message_handling => false) from unnest('{Mine,Other,Spare}'::text[]) as q (name);
select sb.alter_queue(q.name, activation_procedure => 'room.step') from unnest('{Mine,Other}'::text[]) as q (name);
select sb.create_service('MyShop', 'Mine', '{Deal}'), sb.create_service('SpareShop', 'Mine'), sb.create_service('OtherShop', 'Other', '{Deal}');
select sb.create_route('MyRoute', 'LOCAL', 'Elsewhere'), sb.create_broker_priority('Priority', 'Check');
select sb.create_event_notification('Event', 'Mine', 'BROKER_QUEUE_DISABLED', 'MyShop')`)
	for _, object := range []string{
		"message_type Note", "message_type Checked", "message_type SpareType", "contract Deal", "contract Check", "contract SpareContract",
		"queue Mine", "queue Spare", "service MyShop", "service SpareShop", "route MyRoute",
	} {
		kind, name, _ := strings.Cut(object, " ")
		o.Exec("select sb.alter_authorization($1, $2, $3::name)", kind, name, s.boss)
	}
	o.Exec("select sb.alter_authorization('queue', 'Other', $1::name)", s.other)
	o.Exec("select sb.grant_admin($1::name), sb.grant_admin($2::name)", s.admin, admins)
	for _, role := range []string{s.reader, s.clerks} {
		o.Exec("select sb.grant_receive('Mine', $1::name), sb.grant_references('Deal', $1::name), sb.grant_references('Check', $1::name)", role)
	}
	o.Exec("select sb.grant_send('MyShop', $1::name), sb.grant_send('MyShop', $2::name), sb.grant_send('OtherShop', $3::name)", s.sender, db.Owner, s.boss)

	// A dialog under way, with an answer to be received, and one that has not said anything.
	handle := o.Value("select sb.begin_dialog('MyShop', 'OtherShop', 'Deal')")
	o.Exec("select sb.send($1::uuid, 'Note')", handle)
	answering := o.Value("select conversation_handle from sb.receive('Other')")
	o.Exec("select sb.send($1::uuid, 'Note'), sb.send($2::uuid, 'Note')", answering, handle)
	fresh := o.Value("select sb.begin_dialog('MyShop', 'OtherShop', 'Deal')")
	group := func(handle string) string {
		return o.Value("select e.conversation_group_id from sb.conversation_endpoints as e where e.conversation_handle = $1::uuid", handle)
	}
	o.Exec(`select sb.set_state($1::uuid, '"mine"'), sb.set_state($2::uuid, '"other"')`, group(handle), group(answering))
	for _, from := range []string{"MyShop", "OtherShop"} {
		o.Exec("select sb.send(sb.begin_dialog($1, 'Nowhere', 'Deal'), 'Note')", from)
	}
	queue := o.Value("select queue_id from sb.service_queues where name = 'Mine'")
	o.Exec(`select sb.report_activation('here', jsonb_build_array(
  jsonb_build_object('pid', $1::integer, 'queue_id', $3::integer, 'procedure_name', 'room.step', 'execute_as', current_user, 'age', 0),
  jsonb_build_object('pid', $2::integer, 'queue_id', (select queue_id from sb.service_queues where name = 'Other'), 'procedure_name', 'room.step', 'execute_as', current_user, 'age', 0)), '[]')`,
		o.PID(), db.Session(t, "second").PID(), queue)
	s.fill = strings.NewReplacer("{handle}", handle, "{fresh}", fresh, "{group}", group(handle), "{freshGroup}", group(fresh), "{queue}", queue, "{stranger}", s.stranger)
	return s
}

// actor is one way to be somebody.
type actor struct {
	what string
	s    *pgtest.Session
	has  []string // what of the matrix's needs
	sees string   // which column of reading
	wrap string   // a function that runs its argument, with the rights of its owner
}

// Every public function and every view, as everybody.
// Rules
func TestMatrix(t *testing.T) {
	t.Parallel()
	shops := newTwoShops(t)

	// No function and no view without a row, and the page says the same.
	var functions, views []string
	for _, row := range matrix {
		functions = append(functions, "sb."+row.function)
	}
	for _, row := range reading {
		views = append(views, row.view)
	}
	slices.Sort(functions)
	wantRows(t, "functions", slices.Compact(functions), shops.owner.Query(`select p.oid::regprocedure from pg_proc as p where p.pronamespace = 'sb'::regnamespace order by p.oid::regprocedure::text collate "C"`)...)
	slices.Sort(views)
	wantRows(t, "views", views, shops.owner.Query(`select c.relname from pg_class as c where c.relnamespace = 'sb'::regnamespace and c.relkind = 'v' order by c.relname collate "C"`)...)
	documented(t)

	all := []string{anyRight, receive, begin, ownership, admin}
	upTo := func(most string) []string { return all[:slices.Index(all, most)+1] }
	as := func(role string) *pgtest.Session { return shops.SessionAs(t, role, role) }
	via := func(role string) string {
		name := "room.by_" + role
		as(role).Exec(fmt.Sprintf(`
create function %s(statement text) returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  execute statement;
end $$`, name))
		return name
	}
	setRole := func(s *pgtest.Session, role string) *pgtest.Session {
		s.Exec(fmt.Sprintf("set role %q", role))
		return s
	}
	superuserAs := func(role string) *pgtest.Session { return setRole(shops.SessionAs(t, "superuser", ""), role) }

	actors := []actor{
		{what: "owner of sb", s: shops.owner, has: all, sees: "all"},
		{what: "admin", s: as(shops.admin), has: all, sees: "all"},
		{what: "member of admins", s: as(shops.deputy), has: all, sees: "all"},
		{what: "owner of the object", s: as(shops.boss), has: upTo(ownership), sees: "owner"},
		{what: "RECEIVE and REFERENCES", s: as(shops.reader), has: upTo(begin), sees: "receiver"},
		{what: "member that inherits", s: as(shops.member), has: upTo(begin), sees: "receiver"},
		{what: "member that does not inherit", s: as(shops.aloof)},
		{what: "the same after SET ROLE", s: setRole(as(shops.aloof), shops.clerks), has: upTo(begin), sees: "receiver"},
		{what: "SEND", s: as(shops.sender), has: upTo(anyRight), sees: "sender"},
		{what: "owner of another queue", s: as(shops.other), has: upTo(anyRight), sees: "other"},
		{what: "stranger", s: as(shops.stranger)},
		{what: "stranger in a definer function of the reader", s: as(shops.stranger), wrap: via(shops.reader), has: upTo(begin), sees: "receiver"},
		{what: "admin in a definer function of the stranger", s: as(shops.admin), wrap: via(shops.stranger)},
		{what: "stranger in a definer function of the admin", s: as(shops.stranger), wrap: via(shops.admin), has: all, sees: "all"},
		{what: "superuser after SET ROLE to the stranger", s: superuserAs(shops.stranger)},
		{what: "superuser after SET ROLE to the reader", s: superuserAs(shops.reader), has: upTo(begin), sees: "receiver"},
	}
	for _, a := range actors {
		a.check(t, shops)
	}

	// Once more by way of PUBLIC.
	shops.owner.Exec("select sb.grant_receive('Mine', 'public'), sb.grant_references('Deal', 'public'), sb.grant_references('Check', 'public')")
	actor{what: "stranger by way of PUBLIC", s: as(shops.stranger), has: upTo(begin), sees: "receiver"}.check(t, shops)
	shops.owner.Exec("select sb.revoke_receive('Mine', 'public'), sb.revoke_references('Deal', 'public'), sb.revoke_references('Check', 'public')")
	actor{what: "stranger, nothing left to PUBLIC", s: as(shops.stranger)}.check(t, shops)
}

// check tries all of the matrix and reads all views.
func (a actor) check(t *testing.T, shops *twoShops) {
	t.Helper()
	for _, row := range matrix {
		call := shops.fill.Replace(row.call)
		if a.wrap != "" {
			call = fmt.Sprintf("select %s($_$%s$_$)", a.wrap, call)
		}
		want := "42501"
		if slices.Contains(a.has, row.needs) {
			want = ""
		}
		if got, err := try(t, a.s, call); got != want || want == "" && err != nil {
			t.Errorf("%s: %s: got %q, want %q: %v", a.what, call, got, want, err)
		}
	}
	for _, row := range reading {
		read := query(row.view, row.rows)
		want, known := map[string]string{"all": row.all, "owner": row.owner, "receiver": row.receiver, "sender": row.sender, "other": row.other}[a.sees]
		if a.wrap != "" {
			// A definer function has no rows to show, but what it reads it can compare.
			read = fmt.Sprintf("select %s($_$select 1 / ((%s) = $w$%s$w$)::integer$_$)", a.wrap, read, want)
		}
		switch {
		case !known:
			a.s.ExecError("42501", read)
		case a.wrap != "":
			if _, err := try(t, a.s, read); err != nil {
				t.Errorf("%s: view %s: %v", a.what, row.view, err)
			}
		default:
			wantValue(t, a.what+": view "+row.view, a.s.Value(read), want)
		}
	}
}

// documented compares the table of docs/security.md with the matrix.
func documented(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string][]string{}, map[string][]string{}
	for _, row := range matrix {
		name, _, _ := strings.Cut(row.function, "(")
		want[row.needs] = append(want[row.needs], name)
	}
	_, section, _ := strings.Cut(string(page), "\n## Every verb and view\n")
	section, _, _ = strings.Cut(section, "\n## ")
	verbs, views, _ := strings.Cut(section, "\n| view |")
	names := regexp.MustCompile("`(\\w+)`")
	for line := range strings.Lines(verbs) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, name := range names.FindAllStringSubmatch(cells[2], -1) {
			needs := strings.TrimSpace(cells[1])
			got[needs] = append(got[needs], name[1])
		}
	}
	for _, lists := range []map[string][]string{want, got} {
		for needs := range lists {
			slices.Sort(lists[needs])
			lists[needs] = slices.Compact(lists[needs])
		}
	}
	for _, needs := range slices.Sorted(maps.Keys(want)) {
		wantRows(t, "docs/security.md: "+needs, got[needs], want[needs]...)
	}
	for _, row := range reading {
		if !strings.Contains(views, "`"+row.view+"`") {
			t.Errorf("docs/security.md does not say who sees what in %s", row.view)
		}
	}
}
