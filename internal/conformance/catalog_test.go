package conformance

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// sqlServerColumns are the columns of SQL Server's views, with their types, in its order. A column in brackets is not
// here; docs/deviations.md names it.
var sqlServerColumns = map[string]string{
	"service_message_types": "name sysname, message_type_id int, principal_id int, validation char, validation_desc nvarchar, [xml_collection_id int]",
	"service_contracts":     "name sysname, service_contract_id int, principal_id int",
	"service_contract_message_usages": "service_contract_id int, message_type_id int, is_sent_by_initiator bit, " +
		"is_sent_by_target bit",
	"services":                "name sysname, service_id int, principal_id int, service_queue_id int",
	"service_contract_usages": "service_id int, service_contract_id int",
	"service_queue_usages":    "service_id int, service_queue_id int",
	"service_queues": "name sysname, [object_id int], principal_id int, [schema_id int], [parent_object_id int], [type char], [type_desc nvarchar], " +
		"[create_date datetime], [modify_date datetime], is_ms_shipped bit, [is_published bit], [is_schema_published bit], " +
		"max_readers smallint, activation_procedure nvarchar, [execute_as_principal_id int], is_activation_enabled bit, " +
		"is_receive_enabled bit, is_enqueue_enabled bit, is_retention_enabled bit, is_poison_message_handling_enabled bit",
	"routes": "name sysname, route_id int, principal_id int, remote_service_name nvarchar, broker_instance nvarchar, lifetime datetime, " +
		"address nvarchar, mirror_address nvarchar",
	"conversation_groups": "conversation_group_id uniqueidentifier, service_id int, is_system bit",
	"conversation_endpoints": "conversation_handle uniqueidentifier, conversation_id uniqueidentifier, is_initiator tinyint, " +
		"service_contract_id int, conversation_group_id uniqueidentifier, service_id int, lifetime datetime, state char, " +
		"state_desc nvarchar, far_service nvarchar, far_broker_instance nvarchar, principal_id int, [far_principal_id int], " +
		"[outbound_session_key_identifier uniqueidentifier], [inbound_session_key_identifier uniqueidentifier], " +
		"[security_timestamp datetime], dialog_timer datetime, send_sequence bigint, [last_send_tran_id binary], " +
		"[end_dialog_sequence bigint], [receive_sequence bigint], [receive_sequence_frag int], [system_sequence bigint], " +
		"[first_out_of_order_sequence bigint], [last_out_of_order_sequence bigint], [last_out_of_order_frag int], is_system bit, priority tinyint",
	"conversation_priorities": "priority_id int, name sysname, service_contract_id int, local_service_id int, " +
		"remote_service_name nvarchar, priority tinyint",
	"transmission_queue": "conversation_handle uniqueidentifier, to_service_name nvarchar, to_broker_instance nvarchar, " +
		"from_service_name nvarchar, service_contract_name nvarchar, enqueue_time datetime, message_sequence_number bigint, " +
		"message_type_name nvarchar, is_conversation_error bit, is_end_of_dialog bit, message_body varbinary, " +
		"transmission_status nvarchar, priority tinyint",
	"dm_broker_queue_monitors": "database_id int, queue_id int, state nvarchar, last_empty_rowset_time datetime, " +
		"last_activated_time datetime, tasks_waiting int",
	"dm_broker_activated_tasks": "spid int, [database_id smallint], queue_id int, procedure_name nvarchar, execute_as int",
	// sys.databases, as far as it is about the broker; the instance is text of no other form than a uuid.
	"broker": "[service_broker_guid uniqueidentifier], is_broker_enabled bit, is_honor_broker_priority_on bit",
	// The columns of a queue.
	"queue_messages": "status tinyint, priority tinyint, queuing_order bigint, conversation_group_id uniqueidentifier, " +
		"conversation_handle uniqueidentifier, message_sequence_number bigint, service_name nvarchar, service_id int, " +
		"service_contract_name nvarchar, service_contract_id int, message_type_name nvarchar, message_type_id int, " +
		"validation nchar, message_body varbinary, [message_id uniqueidentifier]",
}

// typesHere are the types that stand for SQL Server's.
var typesHere = map[string][]string{
	"sysname": {"text"}, "nvarchar": {"text"}, "char": {"text"}, "nchar": {"text"}, "varbinary": {"bytea"}, "bit": {"boolean"},
	"bigint": {"bigint"}, "datetime": {"timestamp with time zone"}, "uniqueidentifier": {"uuid"},
	"int": {"integer", "name"}, "smallint": {"integer", "smallint"}, "tinyint": {"smallint", "boolean"},
}

// Every column of SQL Server's views is here, under its name, with the type that stands for its own, in its order
// where it is not one of ours; or docs/deviations.md says that it is not.
func TestCatalogColumns(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t).Session(t, "owner")
	deviations := readFile(t, "docs/deviations.md")
	// Rules
	bracketed := regexp.MustCompile(`^\[(\w+) \w+\]$`)
	for view, columns := range sqlServerColumns {
		here := map[string]string{}
		var order []string
		for _, row := range s.Query(`
select a.attname, format_type(a.atttypid, a.atttypmod) from pg_attribute as a
 where a.attrelid = ('sb.' || $1)::regclass and a.attnum > 0 order by a.attnum`, view) {
			name, kind, _ := strings.Cut(row, "|")
			here[name] = kind
			order = append(order, name)
		}
		last := -1
		for _, column := range strings.Split(columns, ", ") {
			if m := bracketed.FindStringSubmatch(column); m != nil {
				if here[m[1]] != "" {
					t.Errorf("%s.%s exists", view, m[1])
				}
				if !strings.Contains(deviations, "`"+m[1]+"`") {
					t.Errorf("docs/deviations.md does not say that %s.%s is missing", view, m[1])
				}
				continue
			}
			name, kind, _ := strings.Cut(column, " ")
			if !slices.Contains(typesHere[kind], here[name]) {
				t.Errorf("%s.%s: %s, in SQL Server %s", view, name, here[name], kind)
			}
			at := slices.Index(order, name)
			if at < last && view != "service_queues" { // whose order is fixed otherwise
				t.Errorf("%s.%s stands before the one before it", view, name)
			}
			last = at
		}
	}
}

// What each column says, of objects and conversations of every look.
func TestCatalogMeaning(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// Rules
	a.Exec(`
create function public.step() returns void language sql as '';
create function public.yes(xml) returns boolean language sql return true;
select sb.create_message_type('Order', 'VALID_XML', 'public.yes(xml)');
select sb.create_contract('Buy', '{Order}', '{Note}');
select sb.create_queue('ActiveQueue', retention => true, activation_procedure => 'public.step', max_queue_readers => 7, poison_message_handling => false, enabled => false);
select sb.create_service('Active', 'ActiveQueue', '{Buy,DEFAULT}');
select sb.create_route('far', 'remote://there', 'Far', 'there', '1 day', 'remote://mirror');
select sb.create_broker_priority('high', 'Buy', 'Left', 'Active', 9::smallint)`)
	// An id by the name of what it stands for, so that it has to be the right one.
	names := func(sql string) string {
		for id, view := range map[string]string{
			"MESSAGE_TYPE(": "service_message_types as o where o.message_type_id", "CONTRACT(": "service_contracts as o where o.service_contract_id",
			"SERVICE(": "services as o where o.service_id", "QUEUE(": "service_queues as o where o.queue_id",
		} {
			for strings.Contains(sql, id) {
				before, rest, _ := strings.Cut(sql, id)
				column, after, _ := strings.Cut(rest, ")")
				sql = before + "(select o.name from sb." + view + " = " + column + "/**/)" + after
			}
		}
		return sql
	}
	check := func(view, sql string, rows ...string) {
		t.Helper()
		wantQuery(t, a, view, names(sql), rows...)
	}
	me := "pg_get_userbyid(v.principal_id::oid) = current_user"
	check("service_message_types", "select v.name, MESSAGE_TYPE(v.message_type_id), "+me+", v.validation, v.validation_desc from sb.service_message_types as v where v.message_type_id >= 65536 order by 1",
		"Note|Note|t|N|NONE", "Order|Order|t|X|XML")
	check("service_contracts", "select v.name, v.service_contract_id >= 65536, "+me+" from sb.service_contracts as v where v.name in ('Buy', 'DEFAULT') order by 1",
		"Buy|t|t", "DEFAULT|f|t")
	check("service_contract_message_usages", "select CONTRACT(v.service_contract_id), MESSAGE_TYPE(v.message_type_id), v.is_sent_by_initiator, v.is_sent_by_target from sb.service_contract_message_usages as v where v.service_contract_id >= 65536 order by 1, 2",
		"Buy|Note|f|t", "Buy|Order|t|f", "Talk|Note|t|t")
	check("services", "select v.name, SERVICE(v.service_id), "+me+", QUEUE(v.service_queue_id) from sb.services as v where v.service_id >= 65536 order by 1",
		"Active|Active|t|ActiveQueue", "Left|Left|t|LeftQueue", "Right|Right|t|RightQueue")
	check("service_contract_usages", "select SERVICE(v.service_id), CONTRACT(v.service_contract_id) from sb.service_contract_usages as v where v.service_id >= 65536 order by 1, 2",
		"Active|Buy", "Active|DEFAULT", "Left|Talk", "Right|Talk")
	check("service_queue_usages", "select SERVICE(v.service_id), QUEUE(v.service_queue_id) from sb.service_queue_usages as v where v.service_id >= 65536 order by 1",
		"Active|ActiveQueue", "Left|LeftQueue", "Right|RightQueue")
	check("service_queues", `select v.name, QUEUE(v.queue_id), `+me+`, v.owner = current_user, v.max_readers, v.activation_procedure, v.execute_as = current_user, v.is_activation_enabled,
  v.is_receive_enabled, v.is_enqueue_enabled, v.is_retention_enabled, v.is_poison_message_handling_enabled, v.is_ms_shipped from sb.service_queues as v order by 1`,
		"ActiveQueue|ActiveQueue|t|t|7|public.step|t|t|f|f|t|f|f", "EventNotificationErrorsQueue|EventNotificationErrorsQueue|t|t|NULL|NULL|NULL|f|t|t|f|t|t",
		"LeftQueue|LeftQueue|t|t|NULL|NULL|NULL|f|t|t|f|t|f", "RightQueue|RightQueue|t|t|NULL|NULL|NULL|f|t|t|f|t|f")
	check("routes", "select v.name, v.route_id >= 65536, "+me+", v.remote_service_name, v.broker_instance, v.lifetime between now() and now() + interval '1 day', v.address, v.mirror_address from sb.routes as v order by 1",
		"AutoCreatedLocal|t|t|NULL|NULL|NULL|LOCAL|NULL", "far|t|t|Far|there|t|remote://there|remote://mirror")
	check("conversation_priorities", "select v.priority_id > 0, v.name, CONTRACT(v.service_contract_id), SERVICE(v.local_service_id), v.remote_service_name, v.priority from sb.conversation_priorities as v",
		"t|high|Buy|Left|Active|9")

	// A conversation with both sides and a timer; one whose peer does not exist yet, with a lifetime and what waits.
	left, right := start(a, "one", "two")
	say(b, right, "back")
	a.Exec("select sb.begin_conversation_timer($1::uuid, '1 hour')", right)
	waits := a.Value("select sb.begin_dialog('Left', 'Active', 'Buy', broker_instance => 'CURRENT DATABASE', lifetime => '2 hours')")
	a.Exec("select sb.send($1::uuid, 'Order', '<order/>'), sb.end_conversation($1::uuid)", waits)
	failing := a.Value("select sb.begin_dialog('Left', 'Active', 'Buy', related_conversation => $1::uuid)", left)
	check("conversation_endpoints", `select CONTRACT(v.service_contract_id), SERVICE(v.service_id), v.is_initiator, v.conversation_id = case when v.is_initiator then v.conversation_handle else '`+left+`' end,
  v.lifetime between now() and now() + interval '2 hours', v.state, v.state_desc, v.far_service, v.far_broker_instance = (select o.broker_instance::text from sb.broker as o), `+me+`,
  v.dialog_timer between now() and now() + interval '1 hour', v.send_sequence, v.is_system, v.priority,
  v.conversation_group_id = (select o.conversation_group_id from sb.conversation_endpoints as o where o.conversation_handle = '`+left+`')
  from sb.conversation_endpoints as v order by v.state, v.is_initiator`,
		"Talk|Right|f|t|NULL|CO|CONVERSING|Left|t|t|t|1|f|5|f", "Talk|Left|t|t|NULL|CO|CONVERSING|Right|NULL|t|NULL|2|f|5|t",
		"Buy|Left|t|t|t|DO|DISCONNECTED_OUTBOUND|Active|t|t|NULL|2|f|9|f", "Buy|Left|t|t|NULL|SO|STARTED_OUTBOUND|Active|NULL|t|NULL|0|f|9|t")
	check("conversation_groups", "select SERVICE(v.service_id), v.is_system, count(e.*) from sb.conversation_groups as v left join sb.conversation_endpoints as e on e.conversation_group_id = v.conversation_group_id group by 1, 2 order by 1",
		"Left|f|2", "Right|f|1")
	check("transmission_queue", `select v.conversation_handle = '`+waits+`', v.to_service_name, v.to_broker_instance = (select o.broker_instance::text from sb.broker as o), v.from_service_name, v.service_contract_name,
  v.enqueue_time between now() - interval '1 hour' and clock_timestamp(), v.message_sequence_number, regexp_replace(v.message_type_name, '.*/', ''), v.is_conversation_error, v.is_end_of_dialog,
  sb.body_text(v.message_body), v.transmission_status = sb.get_transmission_status(v.conversation_handle), v.priority from sb.transmission_queue as v order by v.message_sequence_number`,
		"t|Active|t|Left|Buy|t|0|Order|f|f|<order/>|t|9", "t|Active|t|Left|Buy|t|1|EndDialog|f|t|NULL|t|9")
	check("queue_messages", `select v.queue_name, v.status, v.priority, v.queuing_order > 0, v.conversation_handle in ('`+left+`', '`+right+`'), v.message_sequence_number, v.service_name, SERVICE(v.service_id),
  v.service_contract_name, CONTRACT(v.service_contract_id), v.message_type_name, MESSAGE_TYPE(v.message_type_id), v.validation, sb.body_text(v.message_body), v.message_enqueue_time between now() - interval '1 hour' and clock_timestamp()
  from sb.queue_messages as v order by v.queue_name, v.queuing_order`,
		"LeftQueue|1|5|t|t|0|Left|Left|Talk|Talk|Note|Note|N|back|t", "RightQueue|1|5|t|t|0|Right|Right|Talk|Talk|Note|Note|N|one|t",
		"RightQueue|1|5|t|t|1|Right|Right|Talk|Talk|Note|Note|N|two|t")
	end(a, failing)

	a.Exec("select sb.create_event_notification('n', 'RightQueue', 'QUEUE_ACTIVATION', 'Left'), sb.alter_queue('ActiveQueue', enabled => true)")
	b.Exec("select sb.start_waiting('RightQueue')")
	check("dm_broker_queue_monitors", "select (select d.datname from pg_database as d where d.oid = v.database_id) = current_database(), QUEUE(v.queue_id), v.queue_name, v.state, v.last_empty_rowset_time, v.last_activated_time between now() - interval '1 hour' and clock_timestamp(), v.tasks_waiting from sb.dm_broker_queue_monitors as v order by 2",
		"t|ActiveQueue|ActiveQueue|INACTIVE|NULL|NULL|0", "t|RightQueue|RightQueue|NOTIFIED|NULL|t|1")
	b.Exec("select sb.stop_waiting('RightQueue')")
	take(b, "'RightQueue'")
	take(b, "'RightQueue'")
	check("dm_broker_queue_monitors", "select v.state, v.last_empty_rowset_time between now() - interval '1 hour' and clock_timestamp() from sb.dm_broker_queue_monitors as v where v.queue_name = 'RightQueue'", "INACTIVE|t")
	check("broker", "select v.broker_instance is not null, v.is_broker_enabled, v.is_honor_broker_priority_on, v.schema_version = (select max(m.version) from sb_internal.meta as m) from sb.broker as v", "t|t|f|t")
}

// sb.queue_statistics reads as many pages whether a hundred thousand messages wait or a few times as many; and it says
// what there is.
func TestStatisticsReadNoBacklog(t *testing.T) {
	t.Parallel()
	_, a, _ := newTalk(t)
	// Rules: R-366
	fill := func(messages int) {
		for range 10 {
			a.Exec("select sb.send_batch($1::uuid, 'Note', array(select '\\x78'::bytea from generate_series(1, $2::integer)))", begin(a), messages/10)
		}
		a.Exec("analyze sb_internal.message")
	}
	pages := func() int {
		var plan []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		a.Exec("select * from sb.queue_statistics") // what a session does once
		if err := json.Unmarshal([]byte(a.Value("explain (analyze, buffers, format json) select * from sb.queue_statistics")), &plan); err != nil {
			t.Fatal(err)
		}
		return plan[0].Plan.Hit + plan[0].Plan.Read
	}
	fill(20_000)
	few := pages()
	fill(100_000)
	many := pages()
	t.Logf("%d pages with 20,000 messages, %d with 120,000", few, many)
	if many > few*3/2 {
		t.Errorf("%d pages with 20,000 messages, %d with 120,000", few, many)
	}
	wantQuery(t, a, "estimate", "select is_on, ready_messages between 90000 and 150000, is_estimate, blocked_groups, transmission_backlog, oldest_ready_age between '0' and '1 hour' from sb.queue_statistics where queue_name = 'RightQueue'",
		"t|t|t|0|0|t")
}

// Every number in the registry is one of SQL Server's usage errors, and the SQLSTATE is made of it.
func TestErrorNumbers(t *testing.T) {
	t.Parallel()
	// Rules: R-384
	rows, err := csv.NewReader(strings.NewReader(readFile(t, "sql/errors.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	numbers := regexp.MustCompile(`^(208|3716|84\d\d|9[67]\d\d)$`) // the lists of the engine's messages about the broker
	for _, row := range rows[1:] {
		state, number := row[0], row[4]
		if number == "" {
			continue
		}
		if state != fmt.Sprintf("S%04s", number) || !numbers.MatchString(number) || number == "9644" {
			t.Errorf("%s has number %s", state, number)
		}
	}
}
