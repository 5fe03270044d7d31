package sqltest

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// The outline of a Service Broker application, step by step, with a state table of the application's own: a target
// that adds up the numbers of each conversation, and an initiator that has left before the answers come.
// Rules
func TestApplicationOutline(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	b.Exec("select sb.create_state_table('public.totals', 'total bigint not null, seen integer not null default 0')")
	const initiators = 5
	for i := range initiators {
		left := beginTalk(a)
		for j := range 4 {
			say(a, left, strconv.Itoa(10*i+j))
		}
		say(a, left, "total, please")
	}

	rounds := 0
	for {
		rounds++
		b.Begin()                                                          // 1.
		group := b.Value("select sb.get_conversation_group('RightQueue')") // 2.
		if group == "NULL" {
			b.Rollback()
			break
		}
		b.Exec("insert into public.totals values ($1::uuid, 0) on conflict do nothing", group)
		total := b.Value("select total from public.totals where conversation_group_id = $1::uuid", group)
		seen := 0
		for {
			got := b.Query("select conversation_handle, message_type_name, sb.body_text(message_body) from sb.receive('RightQueue', 2, for_group => $1::uuid)", group) // 3.
			if len(got) == 0 {
				break
			}
			for _, row := range got { // 4., 5.
				seen++
				var handle, kind, body string
				if n, _ := fmt.Sscanf(row[:36], "%s", &handle); n != 1 {
					t.Fatal(row)
				}
				kind, body = row[37:41], row[42:]
				switch {
				case kind != "Note":
					t.Fatalf("unexpected %q", row)
				case body == "total, please":
					say(b, handle, "total "+total) // 6.
				default:
					total = b.Value("select $1::text::bigint + $2::text::bigint", total, body)
				}
			}
			b.Exec("update public.totals set total = $2::text::bigint where conversation_group_id = $1::uuid", group, total) // 7.
		} // 8.
		b.Exec("update public.totals set seen = seen + $2::integer where conversation_group_id = $1::uuid", group, seen)
		b.Commit()
	}
	wantValue(t, "rounds", strconv.Itoa(rounds), strconv.Itoa(initiators+1))
	wantRows(t, "state", b.Query("select total, seen from public.totals order by total"), "6|5", "46|5", "86|5", "126|5", "166|5")

	// The initiator's service is read by somebody else: each answer, then the end of both sides.
	for range initiators {
		a.Begin()
		handle := a.Value("select conversation_handle from sb.receive('LeftQueue')")
		a.Exec("select sb.end_conversation($1::uuid)", handle)
		a.Commit()
	}
	wantRows(t, "nothing more", take(a, "'LeftQueue'"))
	for range initiators {
		wantRows(t, "ended", take(b, "'RightQueue', 1"), "EndDialog")
	}
	for _, handle := range b.Query("select conversation_handle from sb.conversation_endpoints") {
		b.Exec("select sb.end_conversation($1::uuid)", handle)
	}
	wantRows(t, "state goes with the groups", b.Query("select * from public.totals"))
	wantRows(t, "left over", leftOver(b))
}

// Stopping and starting an application, sentence by sentence.
// Rules
func TestStoppingAndStarting(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "before")
	ending, endingRight := startTalk(a, "before too")
	lasting := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '2 hours')")
	say(a, lasting, "with a lifetime")
	for range 3 {
		take(b, "'RightQueue'")
	}
	say(a, left, "arrived and unread")
	b.Exec("select sb.begin_conversation_timer($1::uuid, '1 hour')", right)

	// "The queue is unavailable for receive operations … the application receives an error."
	a.Exec("select sb.alter_queue('RightQueue', enabled => false)")
	b.ExecError("S9617", "select * from sb.receive('RightQueue')")
	b.ExecError("S9617", "select sb.get_conversation_group('RightQueue')")
	wantRows(t, "catalog", a.Query("select is_receive_enabled, is_enqueue_enabled from sb.service_queues where name = 'RightQueue'"), "f|f")

	// "Service Broker doesn't deliver new messages to the queue … doesn't consider it an error, and doesn't notify
	// the sender."
	say(a, left, "one", "two")
	wantRows(t, "held in the transmission queue", waitingIn(a, left), "one", "two")
	wantValue(t, "status", a.Value("select sb.get_transmission_status($1::uuid)", left), `The destination queue "RightQueue" is disabled.`)
	wantValue(t, "sender", stateOf(a, left), "CO")
	wantRows(t, "no message for the sender", take(a, "'LeftQueue'"))

	// "An application can call END CONVERSATION at any time … doesn't deliver the End Dialog message to the remote
	// service until the queue becomes available."
	a.Exec("select sb.end_conversation($1::uuid)", ending)
	wantValue(t, "ended", stateOf(a, ending), "DO")
	wantRows(t, "held", waitingIn(a, ending), "EndDialog")
	wantValue(t, "the other side knows nothing", stateOf(b, endingRight), "CO")
	b.Exec("select sb.send($1::uuid, 'Note', 'from a stopped queue')", right)
	wantRows(t, "a stopped queue's service can send", take(a, "'LeftQueue'"), "from a stopped queue")

	// "Stopping a queue doesn't reset the conversation timer or the dialog lifetime timer … generates the appropriate
	// messages when the queue starts again."
	passTime(a, "3 hours")
	b.ExecError("S9617", "select * from sb.receive('RightQueue')")

	a.Exec("select sb.alter_queue('RightQueue', enabled => true)")
	wantRows(t, "delivered at once", waitingIn(a, left))
	wantValue(t, "the ended side is gone", stateOf(a, ending), "")
	wantRows(t, "timer, then what had arrived, then what waited", take(b, "'RightQueue', for_conversation => '"+right+"'"),
		"DialogTimer", "arrived and unread", "one", "two")
	wantRows(t, "the end", take(b, "'RightQueue', for_conversation => '"+endingRight+"'"), "EndDialog")
	wantRows(t, "the lifetime", take(b, "'RightQueue'"), "Error -8489")
	wantRows(t, "the lifetime at the other side", take(a, "'LeftQueue'"), "Error -8489")
	wantRows(t, "nothing more", append(take(a, "'LeftQueue'"), take(b, "'RightQueue'")...))
}

// Broker messages: the three types, to the letter.
// Rules
func TestBrokerMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ option, prefix, namespace string }{
		{"documented", "https://schemas.microsoft.com/SQL/ServiceBroker/", "https://schemas.microsoft.com/SQL/ServiceBroker"},
		{"sqlserver", "http://schemas.microsoft.com/SQL/ServiceBroker/", "http://schemas.microsoft.com/SQL/ServiceBroker/Error"},
	} {
		t.Run(c.option, func(t *testing.T) {
			t.Parallel()
			_, a, b := newTalk(t)
			a.Exec("select sb.set_option('system_names', $1)", c.option)
			const columns = "select message_type_name, validation, coalesce(convert_from(message_body, 'UTF8'), '-') from sb.receive("

			left, right := startTalk(a, "report")
			a.Exec("select sb.begin_conversation_timer($1::uuid, '1 s')", left)
			passTime(a, "1 min")
			wantRows(t, "peeked", a.Query("select message_type_name from sb.queue_messages where queue_name = 'LeftQueue'"), c.prefix+"DialogTimer")
			wantRows(t, "timer, on one side only", a.Query(columns+"'LeftQueue')"), c.prefix+"DialogTimer|E|-")
			wantRows(t, "the other side", b.Query(columns+"'RightQueue', 1)"), "Note|N|report")
			wantRows(t, "the other side", b.Query(columns+"'RightQueue')"))

			const description = `Unknown cost center "127-1000". Please check the cost center list
and resubmit the report.`
			say(b, right, "last words")
			b.Exec("select sb.end_conversation($1::uuid, 12, $2)", right, description)
			a.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'too late')", left)
			wantRows(t, "Error before what came earlier", a.Query(columns+"'LeftQueue')"),
				c.prefix+`Error|X|<?xml version="1.0"?><Error xmlns="`+c.namespace+`"><Code>12</Code><Description>`+description+`</Description></Error>`,
				"Note|N|last words")
			a.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'too late')", left)
			a.Exec("select sb.end_conversation($1::uuid)", left)

			left, right = startTalk(a, "zero")
			a.Exec("select sb.end_conversation($1::uuid)", left)
			wantRows(t, "EndDialog in its place", b.Query(columns+"'RightQueue')"), "Note|N|zero", c.prefix+"EndDialog|E|-")
			b.Exec("select sb.end_conversation($1::uuid)", right)

			// The Error is XML that anything can read, whatever the description holds.
			left, right = startTalk(a, "zero")
			nasty := "<&>\"' ]]> <!-- \t\r\n ä 🐘 \u0001"
			a.Exec("select sb.end_conversation($1::uuid, 2147483647, $2)", left, nasty)
			body := b.Query(`
select sb.error_code(message_body), replace(sb.error_description(message_body), chr(13), '\r'), message_body::text <> '',
       sb.body_xml(message_body) is document,
       (xpath('/e:Error/e:Code/text()', sb.body_xml(message_body), array[array['e', '` + c.namespace + `']]))[1]
  from sb.receive('RightQueue', 1)`)
			wantRows(t, "nasty description", body, "2147483647|<&>\"' ]]> <!-- \t\\r\n ä 🐘 \ufffd|t|t|2147483647")
			b.Exec("select sb.end_conversation($1::uuid)", right)
			wantRows(t, "left over", leftOver(a))
		})
	}
}

// The option is looked at when a name is read, so it holds for dialogs that live already; programs that compare with
// the one or the other name work at once.
func TestSystemNamesForLiveDialogs(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "zero")
	a.Exec("select sb.end_conversation($1::uuid)", left)
	name := func(s *pgtest.Session) string {
		return s.Value("select message_type_name from sb.queue_messages where message_type_id = 2")
	}
	wantValue(t, "documented", name(a), "https://schemas.microsoft.com/SQL/ServiceBroker/EndDialog")
	a.Exec("select sb.set_option('system_names', 'sqlserver')")
	wantValue(t, "sqlserver", name(a), "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog")
	got := append(b.Query("select message_type_name from sb.receive('RightQueue', 1)"), b.Query("select message_type_name from sb.receive('RightQueue', 1)")...)
	wantRows(t, "one by one", got, "Note", "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog")
	b.Exec("select sb.end_conversation($1::uuid)", right)
	wantRows(t, "left over", leftOver(a))
}
