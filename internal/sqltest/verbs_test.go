package sqltest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// One dialog from the first word to the last, with every column of every row that receive returns.
// Rules
func TestDialogFromBeginToEnd(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '1 hour')")
	right, group := peerOf(a, left), groupOf(a, left)
	wantValue(t, "state of the initiator", stateOf(a, left), "SO")
	wantValue(t, "state of the target before the first SEND", stateOf(a, right), "")

	a.Begin()
	say(a, left, "one", "two")
	wantRows(t, "seen before the sender's commit", take(b, "'RightQueue'"))
	a.Commit()
	wantValue(t, "state of the initiator", stateOf(a, left), "CO")
	wantValue(t, "state of the target", stateOf(a, right), "CO")

	got := b.Query(`
select m.status, m.priority, m.conversation_group_id = g.conversation_group_id, m.conversation_handle,
       m.message_sequence_number, m.service_name, m.service_id = s.service_id, m.service_contract_name,
       m.service_contract_id = c.service_contract_id, m.message_type_name, m.message_type_id = t.message_type_id,
       m.validation, convert_from(m.message_body, 'UTF8'),
       m.message_enqueue_time between now() - interval '1 minute' and clock_timestamp(),
       m.queuing_order > 0
  from sb.receive('RightQueue') as m
  join sb.conversation_endpoints as g on g.conversation_handle = m.conversation_handle and not g.is_initiator
  join sb.services as s on s.name = 'Right'
  join sb.service_contracts as c on c.name = 'Talk'
  join sb.service_message_types as t on t.name = 'Note'`)
	wantRows(t, "received", got,
		"0|5|t|"+right+"|0|Right|t|Talk|t|Note|t|N|one|t|t",
		"0|5|t|"+right+"|1|Right|t|Talk|t|Note|t|N|two|t|t")
	columns := b.Query(`
select string_agg(a.name || ' ' || format_type(a.type, null), ', ' order by a.i)
  from pg_proc as p
 cross join lateral unnest(p.proargnames, p.proallargtypes, p.proargmodes) with ordinality as a (name, type, mode, i)
 where p.oid = 'sb.receive'::regproc and a.mode = 't'`)
	wantRows(t, "columns of receive", columns, "status smallint, priority smallint, queuing_order bigint, "+
		"conversation_group_id uuid, conversation_handle uuid, message_sequence_number bigint, service_name text, "+
		"service_id integer, service_contract_name text, service_contract_id integer, message_type_name text, "+
		"message_type_id integer, validation text, message_body bytea, message_enqueue_time timestamp with time zone")
	if groupOf(b, right) == group {
		t.Error("both sides share a group")
	}

	// The target answers, counting from zero in its own direction, and ends; the initiator hears it in order.
	say(b, right, "answer")
	b.Exec("select sb.end_conversation($1::uuid)", right)
	wantValue(t, "the target, all of it delivered", stateOf(b, right), "")
	wantValue(t, "the initiator", stateOf(a, left), "DI")
	wantRows(t, "answers", a.Query(`
select message_sequence_number, message_type_name, validation, message_body is null from sb.receive('LeftQueue')`),
		"0|Note|N|f", "1|https://schemas.microsoft.com/SQL/ServiceBroker/EndDialog|E|t")
	wantValue(t, "the initiator still has to end", stateOf(a, left), "DI")
	a.Exec("select sb.end_conversation($1::uuid)", left)
	wantRows(t, "left over", leftOver(a))
}

// Every form of a body, and what arrives.
// Rules
func TestSendBodies(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left := beginTalk(a)
	a.Exec("select sb.create_contract('Plain', sent_by_any => '{DEFAULT}')")
	for _, c := range []struct{ body, want string }{
		{"'plain'", "706c61696e"},
		{"'ärger 🐘'::text", "c3a4726765722 0f09f9098"},
		{`'\x00ff'::bytea`, "00ff"},
		{`'\x00ff'`, "5c7830306666"}, // an untyped literal is text
		{`'{"a": 1}'::json`, "7b2261223a20317d"},
		{`'{"a":1}'::jsonb`, "7b2261223a20317d"},
		{"'<a>ä</a>'::xml", "3c613ec3a43c2f613e"},
		{"''", "NULL"},
		{"''::bytea", "NULL"},
		{"'null'::jsonb", "6e756c6c"},
	} {
		a.Exec("select sb.send($1::uuid, 'Note', "+c.body+")", left)
		wantRows(t, c.body, b.Query("select encode(message_body, 'hex') from sb.receive('RightQueue')"),
			strings.ReplaceAll(c.want, " ", ""))
	}
	a.Exec("select sb.send($1::uuid, 'Note')", left)
	wantRows(t, "without a body", b.Query("select message_body is null from sb.receive('RightQueue')"), "t")

	// Defaults: contract DEFAULT, message type DEFAULT. A service accepts it only when it lists it.
	a.Exec("select sb.alter_service('Right', add_contracts => '{DEFAULT}')")
	plain := a.Value("select sb.begin_dialog('Left', 'Right')")
	a.Exec("select sb.send($1::uuid)", plain)
	wantRows(t, "DEFAULT", b.Query("select service_contract_name, message_type_name, message_body from sb.receive('RightQueue')"),
		"DEFAULT|DEFAULT|NULL")
}

func TestSendBatch(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left := beginTalk(a)
	batch := func(array string) { a.Exec("select sb.send_batch($1::uuid, 'Note', "+array+")", left) }
	want := func(what string, rows ...string) {
		t.Helper()
		wantRows(t, what, b.Query("select message_sequence_number, coalesce(sb.body_text(message_body), '-') from sb.receive('RightQueue')"), rows...)
	}
	batch("'{}'")
	want("an empty batch")
	wantValue(t, "state after an empty batch", stateOf(a, left), "SO")
	batch("array['b', 'a', '', 'c']::bytea[]")
	want("in the order of the array", "0|b", "1|a", "2|-", "3|c")
	batch("array['d']::bytea[]")
	want("one", "4|d")
	// Arrays need not be one-dimensional, nor begin at one.
	batch(`'[0:0]={e}'::bytea[]`)
	batch(`'[7:8]={f,g}'::bytea[]`)
	batch(`'{{h}}'::bytea[]`)
	batch(`'{{i,j},{k,l}}'::bytea[]`)
	want("odd arrays", "5|e", "6|f", "7|g", "8|h", "9|i", "10|j", "11|k", "12|l")
	a.ExecError("S8433", "select sb.send_batch($1::uuid, 'Note', array['x', null]::bytea[])", left)
	a.ExecError("S8433", "select sb.send_batch($1::uuid, 'Note', '[0:0]={NULL}'::bytea[])", left)
	a.ExecError("S8433", "select sb.send_batch($1::uuid, 'Note', null)", left)
	batch("array(select convert_to(i::text, 'UTF8') from generate_series(1, 1000) as i)")
	wantValue(t, "a thousand in order", b.Value(`
select count(*) || ' ' || bool_and(m.message_sequence_number = 12 + m.i and sb.body_text(m.message_body) = m.i::text)
  from (select r.*, row_number() over () as i from sb.receive('RightQueue') as r) as m`), "1000 true")
}

// Rules
func TestMulticast(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	stranger := db.CreateRole(t, "stranger")
	a.Exec(`
create function public.is_short(xml) returns boolean language sql return length($1::text) < 10;
grant execute on function public.is_short to public;
select sb.create_message_type('Checked', 'VALID_XML', 'public.is_short(xml)');
select sb.create_message_type('Other');
select sb.create_contract('CheckedTalk', sent_by_any => '{Checked,Other}');
select sb.create_contract('OtherTalk', sent_by_any => '{Other}');
select sb.alter_service('Right', add_contracts => '{CheckedTalk,OtherTalk}');
select sb.create_queue('StrangersQueue');
select sb.create_service('Strangers', 'StrangersQueue')`)
	a.Exec("select sb.grant_receive('StrangersQueue', $1)", stranger)
	a.Exec("select sb.grant_references('CheckedTalk', $1)", stranger)

	one, two, ended := beginTalk(a), beginTalk(a), beginTalk(a)
	say(a, ended, "x")
	a.Exec("select sb.end_conversation($1::uuid)", peerOf(a, ended))
	for range 3 {
		take(b, "'RightQueue'")
	}
	take(a, "'LeftQueue'")
	multi := func(kind, body string, handles ...string) string {
		return "select sb.multicast('{" + strings.Join(handles, ",") + "}', '" + kind + "', '" + body + "')"
	}
	refused := func(code, sql string) {
		t.Helper()
		before := pgtest.Fingerprint(a)
		a.ExecError(code, sql)
		wantValue(t, "what "+sql+" left behind", pgtest.Fingerprint(a), before)
	}
	refused("SB001", multi("Note", "x", one, two, one))
	refused("S8429", multi("Note", "x", one, two, ended))
	refused("S8426", multi("Note", "x", one, two, "00000000-0000-0000-0000-000000000000"))
	refused("S8418", multi("Note", "x", one, "NULL", two))
	refused("S8418", "select sb.multicast(null, 'Note', 'x')")
	refused("S8433", "select sb.multicast('{"+one+"}', 'Note', null)")
	refused("S8428", multi("Nothing", "x", one, two))
	wantRows(t, "nobody got anything", take(b, "'RightQueue'"))

	a.Exec(multi("Note", "to all", two, one))
	wantRows(t, "first", take(b, "'RightQueue'"), "to all")
	wantRows(t, "second", take(b, "'RightQueue'"), "to all")
	wantRows(t, "third", take(b, "'RightQueue'"))
	a.Exec("select sb.multicast('{}', 'Note', 'x')")

	// With a validator function SEND runs in two halves: all the checks hold for all the handles all the same.
	checked := func(s *pgtest.Session, service string) string {
		return s.Value("select sb.begin_dialog('" + service + "', 'Right', 'CheckedTalk')")
	}
	first, second := checked(a, "Left"), checked(a, "Left")
	unrelated := a.Value("select sb.begin_dialog('Left', 'Right', 'OtherTalk')")
	a.Exec("select sb.send($1::uuid, 'Other', 'x')", unrelated)
	a.Exec("select sb.send($1::uuid, 'Other', 'x')", first)
	a.Exec("select sb.send($1::uuid, 'Other', 'x')", second)
	for range 3 {
		take(b, "'RightQueue'")
	}
	for _, body := range []string{"<ok/>", "<much too long/>"} {
		for _, pair := range [][2]string{{first, second}, {second, first}} {
			refused("SB001", multi("Checked", body, pair[0], pair[1], pair[0]))
			refused("S8418", multi("Checked", body, pair[0], "NULL"))
			refused("S8426", multi("Checked", body, pair[0], "ffffffff-ffff-ffff-ffff-ffffffffffff"))
			refused("S8426", multi("Checked", body, pair[0], "00000000-0000-0000-0000-000000000000"))
			refused("S8431", multi("Checked", body, pair[0], unrelated))
		}
	}
	// Nobody may reach conversations of others, whichever handle is looked at first.
	s := db.SessionAs(t, "stranger", stranger)
	for range 4 {
		own := checked(s, "Strangers")
		for _, body := range []string{"<ok/>", "<much too long/>"} {
			before := pgtest.Fingerprint(a)
			s.ExecError("42501", multi("Checked", body, own, first, second))
			wantValue(t, "what a stranger left behind", pgtest.Fingerprint(a), before)
		}
	}
	a.Exec(multi("Checked", "<ok/>", first, second))
	wantRows(t, "first", take(b, "'RightQueue'"), "<ok/>")
	wantRows(t, "second", take(b, "'RightQueue'"), "<ok/>")
	a.Exec(multi("Checked", "<much too long/>", first, second))
	for range 2 {
		wantRows(t, "an invalid body", take(b, "'RightQueue'"), "Error -9615")
		wantRows(t, "an invalid body", take(a, "'LeftQueue', max_messages => 1"), "Error -9615")
	}
}

// scene has a conversation in each state.
type scene struct {
	so, co, coPeer, di, er, do, expired string
	ask, askPeer                        string // contract OneWay: the initiator sends Ask, the target Answer
}

func newScene(s *pgtest.Session) scene {
	s.Exec(`
select sb.create_message_type('Ask');
select sb.create_message_type('Answer');
select sb.create_message_type('Empty', 'EMPTY');
select sb.create_message_type('Xml', 'WELL_FORMED_XML');
select sb.create_message_type('Json', 'WELL_FORMED_JSON');
select sb.create_contract('OneWay', '{Ask,Empty,Xml,Json}', '{Answer}');
select sb.alter_service('Right', add_contracts => '{OneWay}');
select sb.create_queue('OffQueue');
select sb.create_service('Off', 'OffQueue', '{Talk}')`)
	var c scene
	c.so = beginTalk(s)
	c.co, c.coPeer = startTalk(s, "x")
	c.di = beginTalk(s)
	say(s, c.di, "x")
	s.Exec("select sb.end_conversation($1::uuid)", peerOf(s, c.di))
	c.er = beginTalk(s)
	say(s, c.er, "x")
	s.Exec("select sb.end_conversation($1::uuid, 1, 'no')", peerOf(s, c.er))
	c.do = s.Value("select sb.begin_dialog('Left', 'Off', 'Talk')")
	say(s, c.do, "x")
	s.Exec("select sb.alter_queue('OffQueue', enabled => false)")
	s.Exec("select sb.end_conversation($1::uuid)", c.do)
	c.expired = s.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '1 hour')")
	passTime(s, "2 hours")
	c.ask = s.Value("select sb.begin_dialog('Left', 'Right', 'OneWay')")
	s.Exec("select sb.send($1::uuid, 'Ask', 'x')", c.ask)
	c.askPeer = peerOf(s, c.ask)
	return c
}

func TestScene(t *testing.T) {
	t.Parallel()
	_, a, _ := newTalk(t)
	c := newScene(a)
	for want, handle := range map[string]string{"SO": c.so, "CO": c.co, "DI": c.di, "DO": c.do} {
		wantValue(t, "state", stateOf(a, handle), want)
	}
	wantValue(t, "state", stateOf(a, c.er), "ER")
	wantValue(t, "state", stateOf(a, c.expired), "ER")
}

// Every code that a verb may raise, by every way to it. Nothing is changed, and the error says what it is.
// Rules
func TestVerbErrors(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	stranger := db.CreateRole(t, "stranger")
	a.Exec("select sb.create_queue('StrangersQueue')")
	a.Exec("select sb.grant_receive('StrangersQueue', $1)", stranger)
	c := newScene(a)
	left, right := groupOf(a, c.co), groupOf(a, c.coPeer)
	const (
		none    = "'deadbeef-dead-beef-dead-beefdeadbeef'"
		long129 = "repeat('é', 129)"
		long257 = "repeat('é', 257)"
	)
	q := func(handle string) string { return "'" + handle + "'" }
	bodies := []string{"'x'", `'\x00'::bytea`, "'1'::json", "'1'::jsonb", "'<a/>'::xml"}
	calls := map[string][]string{
		"42602": {
			"begin_dialog(null, 'Right', 'Talk')", "begin_dialog('', 'Right', 'Talk')", "begin_dialog(" + long129 + ", 'Right', 'Talk')",
			"begin_dialog('Left', null, 'Talk')", "begin_dialog('Left', '', 'Talk')", "begin_dialog('Left', " + long257 + ", 'Talk')",
			"begin_dialog('Left', 'Right', null)", "begin_dialog('Left', 'Right', '')", "begin_dialog('Left', 'Right', " + long129 + ")",
			"send(" + q(c.co) + ", null)", "send(" + q(c.co) + ", '')", "send(" + q(c.co) + ", " + long129 + ")",
			"send_batch(" + q(c.co) + ", null, '{x}')", "multicast('{" + c.co + "}', null, 'x')",
			"receive(null)", "receive('')", "receive(" + long129 + ")",
			"get_conversation_group(null)", "get_conversation_group('')", "get_conversation_group(" + long129 + ")",
			"start_waiting(null)", "start_waiting('')", "start_waiting(" + long129 + ")", "stop_waiting(null)",
			"create_state_table(null, '')", "create_state_table('', '')",
		},
		"S0208": {
			"receive('none')", "receive('rightqueue')", "receive('sb_internal.queue')", "get_conversation_group('none')", "start_waiting('none')",
			"stop_waiting('none')", "deliver('none')",
		},
		"S9617": {
			"receive('OffQueue')", "receive('OffQueue', timeout => '1 s')", "receive('OffQueue', timeout => '-1 s')",
			"receive('OffQueue', for_group => " + none + ")", "get_conversation_group('OffQueue')",
			"get_conversation_group('OffQueue', '-1 s')",
		},
		"S8423": {"begin_dialog('none', 'Right', 'Talk')", "begin_dialog('left', 'Right', 'Talk')"},
		"S8425": {"begin_dialog('Left', 'Right', 'none')", "begin_dialog('Left', 'Right', 'default')"},
		"S8411": {
			"begin_dialog('Left', 'Right', 'Talk', lifetime => '0')", "begin_dialog('Left', 'Right', 'Talk', lifetime => '-1 s')",
			"begin_dialog('Left', 'Right', 'Talk', lifetime => '69 years')", "begin_dialog('Left', 'Right', 'Talk', lifetime => '178000000 years')",
			"begin_dialog('Left', 'Right', 'Talk', lifetime => '-178000000 years')",
		},
		"S8413": {"begin_dialog('Left', 'Right', 'Talk', broker_instance => " + long129 + ")"},
		"S9610": {
			"begin_dialog('Left', 'Right', 'Talk', related_conversation => " + q(c.coPeer) + ")",
			"begin_dialog('Left', 'Right', 'Talk', related_conversation_group => " + q(right) + ")",
		},
		"S8418": {
			"send(null, 'Note')", "send_batch(null, 'Note', '{x}')", "multicast(null, 'Note', 'x')", "multicast('{NULL}', 'Note', 'x')",
			"move_conversation(null, " + q(left) + ")", "end_conversation(null)", "end_conversation(null, 1, 'x')",
			"end_conversation(null, cleanup => true)", "begin_conversation_timer(null, '1 s')", "cancel_conversation_timer(null)",
		},
		"S8426": {
			"begin_dialog('Left', 'Right', 'Talk', related_conversation => " + none + ")",
			"begin_dialog('Left', 'Right', 'Talk', related_conversation => " + q(c.do) + ")", // it has left its group
			"send(" + none + ", 'Note')", "send_batch(" + none + ", 'Note', '{x}')", "multicast('{" + none[1:37] + "}', 'Note', 'x')",
			"receive('RightQueue', for_conversation => " + none + ")", "receive('RightQueue', for_conversation => " + q(c.co) + ")",
			"receive('RightQueue', for_conversation => " + none + ", timeout => '1 s')", "receive('LeftQueue', for_conversation => " + q(c.do) + ")",
			"move_conversation(" + none + ", " + q(left) + ")", "end_conversation(" + none + ")", "end_conversation(" + none + ", cleanup => true)",
			"begin_conversation_timer(" + none + ", '1 s')", "cancel_conversation_timer(" + none + ")",
		},
		"S8427": {"end_conversation(" + q(c.do) + ")", "end_conversation(" + q(c.do) + ", 1, 'x')"},
		"S8438": {"move_conversation(" + q(c.do) + ", " + q(left) + ")"},
		"S8458": {"begin_conversation_timer(" + q(c.do) + ", '1 s')", "cancel_conversation_timer(" + q(c.do) + ")"},
		"S8428": {"send(" + q(c.co) + ", 'none')", "send(" + q(c.co) + ", 'note')", "send_batch(" + q(c.co) + ", 'none', '{x}')"},
		"S8431": {
			"send(" + q(c.co) + ", 'Ask')", "send(" + q(c.co) + ")",
			"send(" + q(c.co) + ", 'https://schemas.microsoft.com/SQL/ServiceBroker/EndDialog')",
			"send(" + q(c.co) + ", 'https://schemas.microsoft.com/SQL/ServiceBroker/Error', '<a/>')",
			"send(" + q(c.co) + ", 'http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer')",
		},
		"S8432": {"send(" + q(c.ask) + ", 'Answer', 'x')", "send(" + q(c.ask) + ", 'Answer')"},
		"S8434": {"send(" + q(c.askPeer) + ", 'Ask', 'x')"},
		"S8433": {
			"send_batch(" + q(c.co) + ", 'Note', null)", "send_batch(" + q(c.co) + ", 'Note', '{NULL}')", "send_batch(" + q(c.co) + ", 'Note', '{a,NULL,b}')",
			"multicast('{" + c.co + "}', 'Note', null)",
		},
		"S8436": {
			"receive('RightQueue', for_group => " + none + ")", "receive('RightQueue', for_group => " + q(left) + ")",
			"receive('RightQueue', for_group => " + none + ", timeout => '1 s')",
			"move_conversation(" + q(c.co) + ", " + none + ")", "get_state(" + none + ")", "set_state(" + none + ", '1')",
			"set_state(" + none + ", null)",
		},
		"S8439": {"move_conversation(" + q(c.co) + ", " + q(right) + ")"},
		"S8420": {"move_conversation(" + q(c.co) + ", null)", "get_state(null)", "set_state(null, '1')"},
		"S8419": {"end_conversation(" + q(c.co) + ", 0, 'x')", "end_conversation(" + q(c.co) + ", -8489, 'x')"},
		"S8424": {"end_conversation(" + q(c.co) + ", 1)", "end_conversation(" + q(c.co) + ", error_description => 'x')", "end_conversation(" + q(c.co) + ", 1, null)"},
		"S8410": {"begin_conversation_timer(" + q(c.expired) + ", '1 s')"},
		"22023": {
			"begin_dialog('Left', 'Right', 'Talk', related_conversation => " + q(c.co) + ", related_conversation_group => " + q(left) + ")",
			"receive('RightQueue', 0)", "receive('RightQueue', -1)", "receive('RightQueue', -2147483648)",
			"receive('RightQueue', for_conversation => " + q(c.coPeer) + ", for_group => " + q(right) + ")",
			"begin_conversation_timer(" + q(c.co) + ", null)", "begin_conversation_timer(" + q(c.co) + ", '0')",
			"begin_conversation_timer(" + q(c.co) + ", '-1 s')", "begin_conversation_timer(" + q(c.co) + ", '69 years')",
			"begin_conversation_timer(" + q(c.co) + ", '178000000 years')",
			"end_conversation(" + q(c.co) + ", 1, repeat('x', 3001))", "end_conversation(" + q(c.co) + ", 1, 'x', true)",
			"end_conversation(" + q(c.co) + ", error_description => 'x', cleanup => true)", "end_conversation(" + q(c.co) + ", cleanup => null)",
		},
		"SB001": {"multicast('{" + c.co + "," + c.co + "}', 'Note', 'x')"},
	}
	for _, body := range bodies {
		calls["S8418"] = append(calls["S8418"], "send(null, 'Note', "+body+")")
		calls["S8426"] = append(calls["S8426"], "send("+none+", 'Note', "+body+")")
		kind := body[strings.LastIndexByte(body, '\'')+1:]
		if kind == "" {
			kind = "::text"
		}
		calls["S8433"] = append(calls["S8433"], "send("+q(c.co)+", 'Note', null"+kind+")")
		for _, state := range []string{c.di, c.er, c.do, c.expired} {
			calls["S8429"] = append(calls["S8429"], "send("+q(state)+", 'Note', "+body+")")
		}
	}
	for _, state := range []string{c.di, c.er, c.do, c.expired} {
		calls["S8429"] = append(calls["S8429"], "send("+q(state)+", 'Note')", "send_batch("+q(state)+", 'Note', '{x,y}')",
			"multicast('{"+c.co+","+state+"}', 'Note', 'x')")
	}
	refuse := func(s *pgtest.Session, before, code, call string) {
		t.Helper()
		s.Begin()
		err := s.ExecError(code, "select sb."+call)
		s.Rollback()
		if after := pgtest.Fingerprint(a); after != before {
			t.Errorf("%s: something changed: %s, was %s", call, after, before)
		}
		if err.Message == "" || err.Message != strings.TrimSpace(err.Message) || strings.Contains(err.Message, "?") ||
			strings.Contains(err.Message, "%") {
			t.Errorf("%s: message %q", call, err.Message)
		}
		if first := err.Message[:1]; first != strings.ToLower(first) {
			t.Errorf("%s: message %q begins with a capital", call, err.Message)
		}
		if strings.HasPrefix(code, "S") && !strings.HasPrefix(code, "SB") && code != "S0208" &&
			!strings.Contains(err.Detail, "sql_server_number="+code[1:]) {
			t.Errorf("%s: detail %q", call, err.Detail)
		}
	}
	before := pgtest.Fingerprint(a)
	for code, list := range calls {
		for _, call := range list {
			refuse(b, before, code, call)
		}
	}

	// Whoever has no right on the queue of a side may do nothing there, whatever the verb and the state.
	s := db.SessionAs(t, "stranger", stranger)
	var forbidden []string
	for _, handle := range []string{c.so, c.co, c.coPeer, c.di, c.er, c.do, c.expired} {
		h := q(handle)
		forbidden = append(forbidden,
			"send("+h+", 'Note')", "send("+h+", 'Note', 'x')", "send_batch("+h+", 'Note', '{x}')", "multicast('{"+handle+"}', 'Note', 'x')",
			"end_conversation("+h+")", "end_conversation("+h+", 1, 'x')", "end_conversation("+h+", cleanup => true)",
			"move_conversation("+h+", "+q(left)+")", "begin_conversation_timer("+h+", '1 s')", "cancel_conversation_timer("+h+")",
			"get_transmission_status("+h+")")
	}
	forbidden = append(forbidden, "begin_dialog('Left', 'Right', 'Talk')", "receive('RightQueue')", "receive('RightQueue', timeout => '-1 s')",
		"receive('RightQueue', for_conversation => "+q(c.coPeer)+")", "receive('OffQueue')", "get_conversation_group('RightQueue')",
		"get_conversation_group('RightQueue', '-1 s')", "get_state("+q(right)+")", "set_state("+q(right)+", '1')", "start_waiting('RightQueue')",
		"deliver()", "deliver('RightQueue')", "maintain()", "after_restore()")
	for _, call := range forbidden {
		refuse(s, before, "42501", call)
	}
	// A contract needs references.
	a.Exec("select sb.create_service('Strangers', 'StrangersQueue')")
	refuse(s, pgtest.Fingerprint(a), "42501", "begin_dialog('Strangers', 'Right', 'Talk')")
	s.Exec("select sb.begin_dialog('Strangers', 'Right')")

	// Options that make SEND itself fail.
	a.Exec("select sb.set_option('validate_on_send', 'on')")
	before = pgtest.Fingerprint(a)
	for code, list := range map[string][]string{
		"S9615": {
			"send(" + q(c.ask) + ", 'Xml', '<a>')", "send(" + q(c.ask) + ", 'Xml', '<a><b></a></b>'::bytea)", "send(" + q(c.ask) + ", 'Json', '{')",
			"send_batch(" + q(c.ask) + ", 'Xml', array['<a/>', '<a>']::bytea[])", "send(" + q(c.ask) + ", 'Json', '\\x00'::bytea)",
			"multicast('{" + c.ask + "}', 'Json', '01')",
		},
		"S8430": {"send(" + q(c.ask) + ", 'Empty', 'x')", "send(" + q(c.ask) + ", 'Empty', ' ')", "send_batch(" + q(c.ask) + ", 'Empty', array['', 'x']::bytea[])"},
	} {
		for _, call := range list {
			refuse(b, before, code, call)
		}
	}
	b.Exec("select sb.send($1::uuid, 'Empty'), sb.send($1::uuid, 'Empty', ''), sb.send($1::uuid, 'Xml', ''), sb.send($1::uuid, 'Json')", c.ask)
	a.Exec("select sb.set_option('validate_on_send', 'off')")

	// Own queue off and retained copies to be stored there.
	a.Exec("select sb.alter_queue('LeftQueue', enabled => false, retention => true)")
	before = pgtest.Fingerprint(a)
	refuse(b, before, "S9618", "send("+q(c.co)+", 'Note', 'x')")
	refuse(b, before, "S9618", "send_batch("+q(c.co)+", 'Note', '{x}')")
	a.Exec("select sb.alter_queue('LeftQueue', retention => false)")
	b.Exec("select sb.send($1::uuid, 'Note', 'own queue off')", c.co)

	// The status of what does not exist is no error.
	wantValue(t, "status", a.Value("select sb.get_transmission_status("+none+") || sb.get_transmission_status(null) is null"), "f")
}

// What is above the limit, and what is just big.
// Rules
func TestBodySize(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left := beginTalk(a)
	a.ExecError("S8459", "select sb.send($1::uuid, 'Note', convert_to(repeat('x', 268435457), 'UTF8'))", left)
	a.ExecError("S8459", "select sb.send_batch($1::uuid, 'Note', array['x', convert_to(repeat('x', 268435457), 'UTF8')])", left)
	a.Exec("select sb.send($1::uuid, 'Note', repeat('0123456789', 10485760))", left)
	say(a, left, "next")
	wantRows(t, "100 MB", b.Query(`
select octet_length(message_body), md5(message_body) = md5(repeat('0123456789', 10485760))
  from sb.receive('RightQueue', max_messages => 1)`), "104857600|t")
	wantRows(t, "behind it", take(b, "'RightQueue'"), "next")
	a.Exec("select sb.create_message_type('X', 'WELL_FORMED_XML'); select sb.create_contract('XTalk', '{X}'); select sb.alter_service('Right', add_contracts => '{XTalk}')")
	xml := a.Value("select sb.begin_dialog('Left', 'Right', 'XTalk')")
	a.Exec("select sb.send($1::uuid, 'X', '<a>' || repeat('0123456789', 1048576) || '</a>')", xml)
	wantRows(t, "10 MB of XML", b.Query("select octet_length(message_body) from sb.receive('RightQueue')"), "10485767")
}

// afterWaiting checks that a statement of waiter waits for holder's open transaction, ends that, and returns what
// became of the statement.
func afterWaiting(t *testing.T, waiter, holder *pgtest.Session, sql string, args ...any) error {
	t.Helper()
	result := waiter.GoExec(sql, args...)
	pgtest.WaitBlocked(t, waiter, holder)
	holder.Commit()
	return wait(t, result)
}

// SEND waits for SEND, MOVE and END on the same conversation, and for nothing else.
// Rules
func TestSendWaits(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	const send = "select sb.send($1::uuid, 'Note', 'late')"

	left, right := startTalk(a, "one")
	for _, c := range []struct{ name, sql, code string }{
		{"SEND", "select sb.send($1::uuid, 'Note', 'two')", ""},
		{"MOVE", "select sb.move_conversation($1::uuid, (select conversation_group_id from sb.conversation_groups where conversation_group_id <> $1::uuid and service_id = (select service_id from sb.services where name = 'Left') limit 1))", ""},
		{"END", "select sb.end_conversation($1::uuid)", "S8426"},
	} {
		beginTalk(a) // a group to move to
		a.Begin()
		a.Exec(c.sql, left)
		wantCode(t, c.name, afterWaiting(t, b, a, send, left), c.code)
	}
	wantRows(t, "in order", take(b, "'RightQueue', for_conversation => '"+right+"'"), "one", "two", "late", "late", "EndDialog")

	// A rolled-back SEND gives its number back.
	left, right = startTalk(a, "zero")
	a.Begin()
	say(a, left, "never")
	result := b.GoExec(send, left)
	pgtest.WaitBlocked(t, b, a)
	a.Rollback()
	wantCode(t, "after a rollback", wait(t, result), "")
	wantRows(t, "numbers", a.Query("select message_sequence_number, sb.body_text(message_body) from sb.receive('RightQueue', for_conversation => $1::uuid)", right),
		"0|zero", "1|late")

	// While somebody ENDs in DO, the waiting SEND learns the state.
	left, _ = startTalk(a, "zero")
	a.Exec("select sb.alter_queue('RightQueue', enabled => false)")
	a.Begin()
	a.Exec("select sb.end_conversation($1::uuid)", left)
	wantCode(t, "SEND after END into DO", afterWaiting(t, b, a, send, left), "S8429")
	a.Exec("select sb.alter_queue('RightQueue', enabled => true)")

	// What must not hold a SEND up: everything that is no SEND, MOVE or END of this side.
	for name, work := range map[string]string{
		"a reader that holds the group":         "select * from sb.receive('LeftQueue', for_group => $2::uuid)",
		"get_conversation_group":                "select sb.get_conversation_group('LeftQueue')",
		"a timer":                               "select sb.begin_conversation_timer($1::uuid, '1 hour')",
		"a timer cancelled":                     "select sb.cancel_conversation_timer($1::uuid)",
		"a dialog begun in the group":           "select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation => $1::uuid)",
		"state":                                 "select sb.set_state($2::uuid, '1')",
		"the other side's SEND":                 "select sb.send($3::uuid, 'Note', 'x')",
		"the other side's reader":               "select * from sb.receive('RightQueue', for_conversation => $3::uuid)",
		"the other side's timer":                "select sb.begin_conversation_timer($3::uuid, '1 hour')",
		"the other side's END":                  "select sb.end_conversation($3::uuid)",
		"the other side's END with error":       "select sb.end_conversation($3::uuid, 1, 'x')",
		"the other side's clean-up":             "select sb.end_conversation($3::uuid, cleanup => true)",
		"a SEND on another dialog of the group": "select sb.send(sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $2::uuid), 'Note', 'x')",
		"deliver":                               "select sb.deliver()",
		"maintain":                              "select sb.maintain()",
	} {
		left, right := startTalk(a, "one")
		say(a, right, "back")
		a.Begin()
		a.Exec(strings.NewReplacer("$1", "'"+left+"'", "$2", "'"+groupOf(a, left)+"'", "$3", "'"+right+"'").Replace(work))
		t.Log(name)
		mustNotWait(t, b, send, left)
		a.Commit()
		a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", left)
	}
}

// MOVE, END, TIMER, BEGIN DIALOG into a group, set_state and receive by name wait for whoever holds the group.
// Rules
func TestGroupHolderIsWaitedFor(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for name, c := range map[string]struct{ sql, code string }{
		"MOVE away":                  {"select sb.move_conversation($1, $4)", ""},
		"MOVE into":                  {"select sb.move_conversation($4, $2)", ""},
		"END":                        {"select sb.end_conversation($1)", ""},
		"END WITH ERROR":             {"select sb.end_conversation($1, 1, 'x')", ""},
		"END WITH CLEANUP":           {"select sb.end_conversation($1, cleanup => true)", ""},
		"TIMER":                      {"select sb.begin_conversation_timer($1, '1 h')", ""},
		"CANCEL TIMER":               {"select sb.cancel_conversation_timer($1)", ""},
		"BEGIN DIALOG by handle":     {"select sb.begin_dialog('Right', 'Left', 'Talk', related_conversation => $1)", ""},
		"BEGIN DIALOG by group":      {"select sb.begin_dialog('Right', 'Left', 'Talk', related_conversation_group => $2)", ""},
		"set_state":                  {"select sb.set_state($2, '1')", ""},
		"RECEIVE by group":           {"select * from sb.receive('RightQueue', for_group => $2)", ""},
		"RECEIVE by handle":          {"select * from sb.receive('RightQueue', for_conversation => $1)", ""},
		"RECEIVE by group, no limit": {"select * from sb.receive('RightQueue', for_group => $2, timeout => '-1 s')", ""},
	} {
		for holder, hold := range map[string]string{
			"RECEIVE":                "select * from sb.receive('RightQueue', 1, for_group => $2)",
			"GET CONVERSATION GROUP": "select 1 / (sb.get_conversation_group('RightQueue') = $2)::integer",
			"MOVE":                   "select sb.move_conversation($3, $2)",
			"BEGIN DIALOG":           "select sb.begin_dialog('Right', 'Left', 'Talk', related_conversation_group => $2)",
			"TIMER":                  "select sb.begin_conversation_timer($1, '1 h')",
			"set_state":              "select sb.set_state($2, '2')",
		} {
			_, right := startTalk(a, "one", "two")
			// Two more of the same service, nothing to receive on either.
			third := a.Value("select sb.begin_dialog('Right', 'Left', 'Talk')")
			fourth := a.Value("select sb.begin_dialog('Right', 'Left', 'Talk')")
			fill := strings.NewReplacer("$1", "'"+right+"'", "$2", "'"+groupOf(a, right)+"'", "$3", "'"+third+"'", "$4", "'"+fourth+"'")
			if strings.Contains(c.sql, "$4)") {
				fill = strings.NewReplacer("$1", "'"+right+"'", "$2", "'"+groupOf(a, right)+"'", "$3", "'"+third+"'", "$4)", "'"+groupOf(a, fourth)+"')",
					"$4", "'"+fourth+"'")
			}
			a.Begin()
			a.Exec(fill.Replace(hold))
			wantCode(t, name+" against "+holder, afterWaiting(t, b, a, fill.Replace(c.sql)), c.code)
			for _, handle := range a.Query("select conversation_handle from sb.conversation_endpoints") {
				a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", handle)
			}
			a.Exec("select sb.maintain()")
		}
	}
	wantRows(t, "left over", leftOver(a))
}

// Without a name receive and get_conversation_group never wait, but take another group or none.
// Rules
func TestReceiveSkipsHeldGroups(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	_, first := startTalk(a, "first")
	_, second := startTalk(a, "second", "second again")
	for _, hold := range []string{
		"select * from sb.receive('RightQueue', 1)",
		"select sb.get_conversation_group('RightQueue')",
		"select sb.end_conversation('" + first + "')",
		"select sb.begin_conversation_timer('" + first + "', '1 hour')",
		"select sb.move_conversation('" + first + "', (select conversation_group_id from sb.conversation_endpoints where conversation_handle = '" + first + "'))",
	} {
		a.Begin()
		a.Exec(hold)
		b.Begin()
		mustNotWait(t, b, "select 1")
		wantRows(t, "beside "+hold, take(b, "'RightQueue'"), "second", "second again")
		wantRows(t, "beside both", take(b, "'RightQueue'"))
		wantValue(t, "beside both", b.Value("select sb.get_conversation_group('RightQueue')"), "NULL")
		b.Rollback()
		b.Begin()
		wantValue(t, "group beside "+hold, b.Value("select sb.get_conversation_group('RightQueue')"), groupOf(a, second))
		b.Rollback()
		a.Rollback()
		a.Exec("select sb.alter_queue('RightQueue', enabled => true)") // forgets the rollbacks
	}

	// A group held by oneself is eligible, and may be received from again and again.
	b.Begin()
	got := append(take(b, "'RightQueue', 1"), take(b, "'RightQueue', 1")...)
	got = append(got, take(b, "'RightQueue', 1")...)
	if len(got) != 3 {
		t.Errorf("one transaction received %q", got)
	}
	b.Commit()
}

// A message arrives in a group that a reader holds, and the reader itself gets it.
// Rules: R-130
func TestArrivalsAreNotBlockedByReaders(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "one")
	b.Begin()
	wantRows(t, "first", take(b, "'RightQueue'"), "one")
	mustNotWait(t, a, "select sb.send($1::uuid, 'Note', 'two')", left)
	mustNotWait(t, a, "select sb.end_conversation($1::uuid)", left)
	wantRows(t, "arrived meanwhile", take(b, "'RightQueue', for_conversation => '"+right+"'"), "two", "EndDialog")
	b.Exec("select sb.end_conversation($1::uuid)", right)
	b.Commit()
	wantRows(t, "left over", leftOver(a))
}

// Two sides never wait for each other, whatever both do at the same moment.
// Rules: R-129
func TestSidesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	verbs := map[string]string{
		"SEND":             "select sb.send($1::uuid, 'Note', 'x')",
		"END":              "select sb.end_conversation($1::uuid)",
		"END WITH ERROR":   "select sb.end_conversation($1::uuid, 7, 'x')",
		"END WITH CLEANUP": "select sb.end_conversation($1::uuid, cleanup => true)",
		"TIMER":            "select sb.begin_conversation_timer($1::uuid, '1 hour')",
		"RECEIVE":          "select * from sb.receive((select q.name from sb.service_queues as q join sb.services as s on s.service_queue_id = q.queue_id join sb.conversation_endpoints as e on e.service_id = s.service_id where e.conversation_handle = $1::uuid), for_conversation => $1::uuid)",
		"MOVE":             "select sb.move_conversation($1::uuid, (select g.conversation_group_id from sb.conversation_groups as g join sb.conversation_endpoints as e on e.service_id = g.service_id where e.conversation_handle = $1::uuid and g.conversation_group_id <> e.conversation_group_id limit 1))",
	}
	beginTalk(a)
	a.Exec("select sb.begin_dialog('Right', 'Left', 'Talk')")
	for mine, my := range verbs {
		for theirs, their := range verbs {
			left, right := startTalk(a, "one")
			say(a, right, "back")
			a.Begin()
			a.Exec(my, left)
			b.Begin()
			t.Log(mine, "beside", theirs)
			mustNotWait(t, b, their, right)
			b.Commit()
			a.Commit()
			for _, handle := range []string{left, right} {
				if stateOf(a, handle) != "" {
					a.Exec("select sb.end_conversation($1::uuid)", handle)
				}
			}
			// What is left of both ending at once is no message for anybody.
			wantRows(t, mine+" beside "+theirs+": received", take(a, "'LeftQueue'"))
			wantRows(t, mine+" beside "+theirs+": received", take(a, "'RightQueue'"))
		}
	}
	a.Exec("select sb.maintain()")
	for _, handle := range a.Query("select conversation_handle from sb.conversation_endpoints") {
		a.Exec("select sb.end_conversation($1::uuid)", handle)
	}
	wantRows(t, "left over", leftOver(a))
}

// A timeout bounds the whole call; zero and null do not wait for messages; negative waits on.
// Rules
func TestReceiveTimeouts(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "one")
	group := groupOf(a, right)
	within := func(what string, low, high time.Duration, fn func()) {
		t.Helper()
		if took := elapsed(fn); took < low || took > high {
			t.Errorf("%s took %v, not %v to %v", what, took, low, high)
		}
	}
	a.Begin()
	take(a, "'RightQueue', for_group => '"+group+"'")
	for _, named := range []string{", for_group => '" + group + "'", ", for_conversation => '" + right + "'", ""} {
		within("receive"+named+" with a timeout", 300*time.Millisecond, 2*time.Second, func() {
			wantRows(t, "held"+named, take(b, "'RightQueue', timeout => '300 ms'"+named))
		})
		within("receive"+named+" with timeout 0", 0, time.Second, func() {
			wantRows(t, "held"+named, take(b, "'RightQueue', timeout => '0'"+named))
		})
	}
	within("get_conversation_group", 300*time.Millisecond, 2*time.Second, func() {
		wantValue(t, "group", b.Value("select sb.get_conversation_group('RightQueue', '300 ms')"), "NULL")
	})
	a.Commit()
	// The lock is there now, a message is not: the rest of the time is waited for it.
	for _, named := range []string{", for_group => '" + group + "'", ", for_conversation => '" + right + "'", ""} {
		within("empty", 300*time.Millisecond, 2*time.Second, func() {
			wantRows(t, "empty", take(b, "'RightQueue', timeout => '300 ms'"+named))
		})
		within("empty, no timeout", 0, time.Second, func() { wantRows(t, "empty", take(b, "'RightQueue'"+named)) })
	}
	// Half of the time goes on the lock, half on the message.
	a.Begin()
	take(a, "'RightQueue', for_group => '"+group+"'")
	result := b.GoExec("select 1 / (count(*))::integer from sb.receive('RightQueue', for_group => $1::uuid, timeout => '10 s')", group)
	time.Sleep(100 * time.Millisecond)
	a.Commit()
	say(a, left, "two")
	wantCode(t, "lock, then message", wait(t, result), "")

	// However long a timeout is, it is a time.
	for _, timeout := range []string{"-1 s", "20 s", "1000 years", "178000000 years", "-178000000 years"} {
		for _, named := range []string{"", ", for_group => '" + group + "'", ", for_conversation => '" + right + "'"} {
			result := b.GoExec("select 1 / (count(*))::integer from sb.receive('RightQueue', timeout => '" + timeout + "'" + named + ")")
			say(a, left, "x")
			wantCode(t, timeout+named, wait(t, result), "")
		}
		result := b.GoExec("select 1 / (sb.get_conversation_group('RightQueue', '" + timeout + "') is not null)::integer")
		say(a, left, "x")
		wantCode(t, timeout, wait(t, result), "")
		take(b, "'RightQueue'")
	}
}

// Who waits for a group sees what has changed when he gets it.
func TestWaitedForAndGone(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for name, c := range map[string]struct{ work, waiting, code string }{
		"END before RECEIVE by handle": {"select sb.end_conversation($1)", "select * from sb.receive('RightQueue', for_conversation => $1)", "S8426"},
		"END before RECEIVE by group":  {"select sb.end_conversation($1)", "select * from sb.receive('RightQueue', for_group => $2)", "S8436"},
		"END before END":               {"select sb.end_conversation($1)", "select sb.end_conversation($1)", "S8426"},
		"END before MOVE":              {"select sb.end_conversation($1)", "select sb.move_conversation($1, $4)", "S8426"},
		"END before MOVE into":         {"select sb.end_conversation($1)", "select sb.move_conversation($3, $2)", "S8436"},
		"END before TIMER":             {"select sb.end_conversation($1)", "select sb.begin_conversation_timer($1, '1 h')", "S8426"},
		"END before CANCEL":            {"select sb.end_conversation($1)", "select sb.cancel_conversation_timer($1)", "S8426"},
		"END before BEGIN DIALOG":      {"select sb.end_conversation($1)", "select sb.begin_dialog('Right', 'Left', 'Talk', related_conversation => $1)", "S8426"},
		"END before set_state":         {"select sb.end_conversation($1)", "select sb.set_state($2, '1')", "S8436"},
		"MOVE before RECEIVE":          {"select sb.move_conversation($1, $4)", "select 1 / count(*)::integer from sb.receive('RightQueue', for_conversation => $1)", ""},
		"MOVE before END":              {"select sb.move_conversation($1, $4)", "select sb.end_conversation($1)", ""},
		"MOVE before MOVE":             {"select sb.move_conversation($1, $4)", "select sb.move_conversation($1, $5)", ""},
		"MOVE before TIMER":            {"select sb.move_conversation($1, $4)", "select sb.begin_conversation_timer($1, '1 h')", ""},
		"MOVE before BEGIN DIALOG":     {"select sb.move_conversation($1, $4)", "select sb.begin_dialog('Right', 'Left', 'Talk', related_conversation => $1)", ""},
		"MOVE before RECEIVE by group": {"select sb.move_conversation($1, $4)", "select * from sb.receive('RightQueue', for_group => $2)", "S8436"},
		// A dialog into a group that goes makes it anew.
		"END before BEGIN DIALOG by group": {"select sb.end_conversation($1)", "select sb.begin_dialog('Right', 'Left', 'Talk', related_conversation_group => $2)", ""},
	} {
		_, right := startTalk(a, "one")
		third := a.Value("select sb.begin_dialog('Right', 'Left', 'Talk')")
		fourth := a.Value("select sb.begin_dialog('Right', 'Left', 'Talk')")
		fifth := a.Value("select sb.begin_dialog('Right', 'Left', 'Talk')")
		fill := strings.NewReplacer("$1", "'"+right+"'", "$2", "'"+groupOf(a, right)+"'", "$3", "'"+third+"'",
			"$4", "'"+groupOf(a, fourth)+"'", "$5", "'"+groupOf(a, fifth)+"'")
		a.Begin()
		a.Exec(fill.Replace(c.work))
		wantCode(t, name, afterWaiting(t, b, a, fill.Replace(c.waiting)), c.code)
		if name == "MOVE before MOVE" {
			wantValue(t, "group after both", groupOf(a, right), groupOf(a, fifth))
		}
		for _, handle := range a.Query("select conversation_handle from sb.conversation_endpoints") {
			a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", handle)
		}
	}
	wantRows(t, "left over", leftOver(a))
}

// A receive that waited for a group does not hand out of a queue that was switched off meanwhile.
func TestQueueStoppedWhileWaitingForTheGroup(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	_, right := startTalk(a, "one", "two")
	for _, named := range []string{"for_group => '" + groupOf(a, right) + "'", "for_conversation => '" + right + "'"} {
		for _, timeout := range []string{"null", "'-1 s'", "'20 s'"} {
			a.Begin()
			take(a, "'RightQueue', 1, for_conversation => '"+right+"'")
			result := b.GoExec("select * from sb.receive('RightQueue', " + named + ", timeout => " + timeout + ")")
			if timeout != "'20 s'" {
				pgtest.WaitBlocked(t, b, a)
			}
			a.Exec("select sb.alter_queue('RightQueue', enabled => false)")
			a.Commit()
			wantCode(t, named+" timeout "+timeout, wait(t, result), "S9617")
			a.Exec("select sb.alter_queue('RightQueue', enabled => true)")
			say(a, peerOf(a, right), "more")
		}
	}
}

// Rules
func TestMoveConversation(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "one")
	left2, right2 := startTalk(a, "two")
	old, group := groupOf(a, right), groupOf(a, right2)
	initiators := groupOf(a, left)
	a.Exec("select sb.set_state($1::uuid, '\"old\"'), sb.begin_conversation_timer($2::uuid, '1 hour')", old, right)
	a.Exec("select sb.move_conversation($1::uuid, $1::uuid)", old) // to where it is: nothing to do
	wantValue(t, "state kept", a.Value("select sb.get_state($1::uuid)", old), `"old"`)

	a.Exec("select sb.move_conversation($1::uuid, $2::uuid)", right, group)
	wantValue(t, "the other side", groupOf(a, left), initiators)
	wantRows(t, "the group left empty, and its state", a.Query("select 1 from sb.conversation_groups where conversation_group_id = $1::uuid union all select 2 from sb.conversation_state", old))
	wantRows(t, "queued messages", a.Query("select distinct conversation_group_id from sb.queue_messages where queue_name = 'RightQueue'"), group)
	say(a, left, "one more")
	say(a, left2, "two more")
	passTime(a, "2 hours")
	b.Begin()
	got := b.Query("select conversation_group_id, message_type_id = 5, coalesce(sb.body_text(message_body), '') from sb.receive('RightQueue', for_group => $1::uuid)", group)
	wantRows(t, "one group, conversation by conversation", got, group+"|t|", group+"|f|one", group+"|f|one more", group+"|f|two", group+"|f|two more")
	b.Commit()

	// A message that was on its way during the move carries the old group's name and is found all the same.
	left, right = startTalk(a, "zero")
	take(b, "'RightQueue'")
	b.Begin()
	say(b, left, "on its way")
	a.Exec("select sb.move_conversation($1::uuid, $2::uuid)", right, group)
	b.Commit()
	wantRows(t, "by group", take(a, "'RightQueue', for_group => '"+group+"'"), "on its way")
	b.Begin()
	say(b, left, "and again")
	b.Commit()
	b.Begin()
	say(b, left, "and again 2")
	a.Exec("select sb.move_conversation($1::uuid, $2::uuid)", right2, groupOf(a, a.Value("select sb.begin_dialog('Right', 'Left', 'Talk')")))
	a.Exec("select sb.move_conversation($1::uuid, $2::uuid)", right, groupOf(a, right2))
	b.Commit()
	wantRows(t, "by queue", take(a, "'RightQueue'"), "and again", "and again 2")
	wantRows(t, "nothing else", take(a, "'RightQueue'"))
}

// Related dialogs share a group, by handle or by group id, and a group id of one's own is taken as it is.
// Rules
func TestRelatedDialogs(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	first := beginTalk(a)
	second := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation => $1::uuid)", first)
	third := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $1::uuid)", groupOf(a, first))
	wantValue(t, "by handle", groupOf(a, second), groupOf(a, first))
	wantValue(t, "by group", groupOf(a, third), groupOf(a, first))
	const own = "11111111-2222-3333-4444-555555555555"
	fourth := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $1::uuid)", own)
	wantValue(t, "own id", groupOf(a, fourth), own)

	// Two who make the same group at once: the second waits and joins.
	const both = "22222222-2222-3333-4444-555555555555"
	for _, end := range []func(){b.Commit, b.Rollback} {
		b.Begin()
		b.Exec("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $1::uuid)", both)
		result := a.GoExec("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $1::uuid)", both)
		pgtest.WaitBlocked(t, a, b)
		end()
		wantCode(t, "begin_dialog into a group being made", wait(t, result), "")
	}
	wantValue(t, "dialogs in it", a.Value("select count(*) from sb.conversation_endpoints where conversation_group_id = $1::uuid", both), "3")

	// Replies on all of them come to one reader.
	for _, handle := range []string{first, second, third} {
		say(a, handle, "ask")
		wantRows(t, "asked", take(b, "'RightQueue'"), "ask")
		say(b, peerOf(a, handle), "reply")
	}
	a.Begin()
	wantRows(t, "replies", take(a, "'LeftQueue'"), "reply", "reply", "reply")
	a.Commit()

	// The group stays until its last conversation has ended.
	group := groupOf(a, first)
	a.Exec("select sb.set_state($1::uuid, '1')", group)
	for i, handle := range []string{first, second, third} {
		wantValue(t, fmt.Sprintf("state, %d conversations ended", i), a.Value("select sb.get_state($1::uuid)", group), "1")
		a.Exec("select sb.end_conversation($1::uuid)", handle)
	}
	a.ExecError("S8436", "select sb.get_state($1::uuid)", group)
}

// Cancelling a call that waits leaves nothing behind and the session usable.
func TestCancelledWaits(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	watcher := db.Session(t, "watcher")
	_, right := startTalk(a, "one")
	before := pgtest.Fingerprint(a)
	for _, sql := range []string{
		"select * from sb.receive('LeftQueue', timeout => '-1 s')",
		"select sb.get_conversation_group('LeftQueue', '-1 s')",
		"select * from sb.receive('RightQueue', for_conversation => '" + right + "', timeout => '-1 s')",
		"select sb.end_conversation('" + right + "')",
	} {
		a.Begin()
		take(a, "'RightQueue', for_conversation => '"+right+"'")
		result := b.GoExec(sql)
		// A cancel that comes before the statement would be for nothing.
		pgtest.Eventually(t, time.Minute, func() bool {
			return watcher.Value("select state = 'active' and wait_event_type in ('Lock', 'Timeout') from pg_stat_activity where pid = $1::integer", b.PID()) == "t"
		})
		a.Exec("select pg_cancel_backend($1::integer)", b.PID())
		wantCode(t, sql, wait(t, result), "57014")
		a.Rollback()
		a.Exec("select sb.alter_queue('RightQueue', enabled => true)")
		wantValue(t, "after "+sql, pgtest.Fingerprint(a), before)
	}
	wantRows(t, "still there", take(b, "'RightQueue'"), "one")
}

// A statement that fails in a savepoint can be caught and the transaction goes on.
// Rules
func TestErrorsCanBeCaught(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, _ := startTalk(a)
	gone := beginTalk(a)
	say(a, gone, "x")
	take(b, "'RightQueue'")
	a.Exec("select sb.end_conversation($1::uuid)", peerOf(a, gone))
	a.Exec(`
create function public.say(old uuid, other uuid, body text) returns uuid language plpgsql as $$
begin
  perform sb.send(old, 'Note', body);
  return old;
exception
  when sqlstate 'S8429' then
    perform sb.send(other, 'Note', body);
    return other;
end $$`)
	wantValue(t, "the dialog used", a.Value("select public.say($1::uuid, $2::uuid, 'hello')", gone, left), left)
	wantRows(t, "arrived", take(b, "'RightQueue'"), "hello")

	// In a receive, a failing cast leaves the message where it is.
	say(a, left, "not a number")
	a.ExecError("22P02", "select sb.body_text(message_body)::integer from sb.receive('RightQueue')")
	wantRows(t, "still there", take(b, "'RightQueue'"), "not a number")
	// However receive stands in a statement, it runs once.
	for _, form := range []string{
		"select sb.body_text((sb.receive('RightQueue')).message_body)",
		"select sb.body_text(r.message_body) from sb.receive('RightQueue') as r limit 1",
		"select sb.body_text(r.message_body) from (select 'RightQueue' as q) as n cross join lateral sb.receive(n.q, 1) as r",
		"with r as (select * from sb.receive('RightQueue', 1)) select sb.body_text(message_body) from r",
		"select sb.body_text((select message_body from sb.receive('RightQueue', 1)))",
	} {
		say(a, left, "x", "y")
		wantRows(t, form, b.Query(form)[:1], "x")
		take(b, "'RightQueue'")
	}
}

// With retention what is received stays as status 0, and what is sent as a copy of status 3, until the conversation
// ends; neither can be received again.
// Rules
func TestRetention(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	rows := func(queue string) []string {
		return a.Query("select status, message_sequence_number, coalesce(sb.body_text(message_body), '-') from sb.queue_messages where queue_name = $1 order by queuing_order", queue)
	}
	left, right := startTalk(a, "before") // retention comes later: this one is not kept
	a.Exec("select sb.alter_queue('LeftQueue', retention => true), sb.alter_queue('RightQueue', retention => true)")
	say(a, left, "one")
	a.Exec("select sb.send_batch($1::uuid, 'Note', array['two', '']::bytea[])", left)
	wantRows(t, "sent copies", rows("LeftQueue"), "3|1|one", "3|2|two", "3|3|-")
	wantRows(t, "received", take(b, "'RightQueue', 2"), "before", "one")
	wantRows(t, "received and ready", rows("RightQueue"), "0|0|before", "0|1|one", "1|2|two", "1|3|-")
	wantRows(t, "status as receive returns it", b.Query("select status from sb.receive('RightQueue', 1)"), "0")
	say(b, right, "back")
	wantRows(t, "copies are not received", take(b, "'RightQueue'"), "")
	wantRows(t, "again", take(b, "'RightQueue'"))
	wantRows(t, "all retained", rows("RightQueue"), "0|0|before", "0|1|one", "0|2|two", "0|3|-", "3|0|back")
	wantRows(t, "by handle", take(b, "'RightQueue', for_conversation => '"+right+"'"))
	wantValue(t, "group", b.Value("select sb.get_conversation_group('RightQueue')"), "NULL")
	wantRows(t, "the initiator's", take(a, "'LeftQueue'"), "back")

	// Rolled back, nothing is retained.
	say(a, left, "four")
	b.Begin()
	take(b, "'RightQueue'")
	b.Rollback()
	wantRows(t, "ready again", a.Query("select status from sb.queue_messages where queue_name = 'RightQueue' and message_sequence_number = 4 and sb.body_text(message_body) = 'four'"), "1")

	// What waits has its copy, too, and a copy says nothing about delivery.
	a.Exec(stopRight)
	say(a, left, "five")
	wantRows(t, "copy of what waits", rows("LeftQueue")[4:], "3|4|four", "3|5|five")
	a.Exec(startRight)

	// Off again: later messages only.
	a.Exec("select sb.alter_queue('LeftQueue', retention => false)")
	say(a, left, "six")
	wantRows(t, "no further copies", rows("LeftQueue")[4:], "3|4|four", "3|5|five")

	// Gone at END, each side's at its own.
	a.Exec("select sb.end_conversation($1::uuid)", left)
	wantRows(t, "the initiator's", rows("LeftQueue"))
	if got := len(rows("RightQueue")); got != 9 {
		t.Errorf("the target keeps %d rows: %q", got, rows("RightQueue"))
	}
	take(b, "'RightQueue'")
	b.Exec("select sb.end_conversation($1::uuid)", right)
	wantRows(t, "left over", leftOver(a))

	// A move takes the retained rows along.
	_, right = startTalk(a, "zero")
	take(b, "'RightQueue'")
	group := groupOf(a, b.Value("select sb.begin_dialog('Right', 'Left', 'Talk')"))
	b.Exec("select sb.move_conversation($1::uuid, $2::uuid)", right, group)
	wantRows(t, "moved", a.Query("select distinct conversation_group_id from sb.queue_messages"), group)
}

// State tables of one's own, and the built-in one: keyed by the group, gone with its last conversation.
// Rules: R-398
func TestStateTables(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	for _, c := range []struct{ name, as string }{
		{"public.plain", "public.plain"},
		{`public."Quoted ""Name"""`, `public."Quoted ""Name"""`},
		{"bare", "public.bare"},
		{`"; drop table public.plain; --"`, `public."; drop table public.plain; --"`},
	} {
		a.Exec("set search_path = public")
		a.Exec("select sb.create_state_table($1, 'total integer not null default 0, note text')", c.name)
		wantRows(t, c.name, a.Query("select a.attname, format_type(a.atttypid, a.atttypmod) from pg_attribute as a where a.attrelid = $1::regclass and a.attnum > 0 order by a.attnum", c.as),
			"conversation_group_id|uuid", "total|integer", "note|text")
		left, right := startTalk(a, "x")
		second := b.Value("select sb.begin_dialog('Right', 'Left', 'Talk', related_conversation => $1::uuid)", right)
		b.Exec("insert into "+c.as+" values ($1::uuid, 5)", groupOf(a, right))
		b.ExecError("23503", "insert into "+c.as+" values ('deadbeef-dead-beef-dead-beefdeadbeef', 5)")
		take(b, "'RightQueue'")
		b.Exec("select sb.end_conversation($1::uuid)", right)
		wantRows(t, "one conversation is left", b.Query("select total from "+c.as), "5")
		b.Begin()
		b.Exec("select sb.end_conversation($1::uuid)", second)
		wantRows(t, "the last one has ended", b.Query("select total from "+c.as))
		b.Rollback()
		wantRows(t, "rolled back", b.Query("select total from "+c.as), "5")
		b.Exec("select sb.end_conversation($1::uuid)", second)
		wantRows(t, "the last one has ended", b.Query("select total from "+c.as))
		take(a, "'LeftQueue'")
		a.Exec("select sb.end_conversation($1::uuid)", left)
		a.Exec("select sb.drop_state_table($1)", c.name)
		a.ExecError("42P01", "select sb.drop_state_table($1)", c.name)
		a.Exec("select sb.drop_state_table($1, if_exists => true)", c.name)
	}

	// Kept for good when asked to.
	a.Exec("select sb.create_state_table('public.kept', '', drop_on_end => false)")
	left := beginTalk(a)
	a.Exec("insert into public.kept values ($1::uuid)", groupOf(a, left))
	a.Exec("select sb.end_conversation($1::uuid)", left)
	wantValue(t, "kept", a.Value("select count(*) from public.kept"), "1")

	// With the caller's rights, owned by the caller, and nobody else's table is dropped or named a state table.
	role := db.CreateRole(t, "user")
	// As it is from PostgreSQL 15 on.
	db.SessionAs(t, "superuser", "").Exec("revoke create on schema public from public; grant create on schema public to " + db.Owner)
	a.Exec("create schema room; grant all on schema room to public; create table public.other (x integer)")
	a.Exec("select sb.grant_receive('RightQueue', $1)", role)
	s := db.SessionAs(t, "user", role)
	s.Exec("set search_path = room")
	s.ExecError("42501", "select sb.create_state_table('mine', 'x integer')")
	s.Exec("select sb.create_state_table('mine', 'x integer', drop_on_end => false); drop table mine")
	// Its triggers run in the sessions of others, so with the key it is for admins.
	a.Exec("select sb.grant_admin($1)", role)
	s.Exec("select sb.create_state_table('mine', 'x integer')")
	wantValue(t, "owner", a.Value("select tableowner = $1 from pg_tables where tablename = 'mine' and schemaname = 'room'", role), "t")
	s.ExecError("42501", "select sb.create_state_table('public.not_mine', 'x integer')")
	s.ExecError("42501", "select sb.create_state_table('sb.not_mine', 'x integer')")
	s.ExecError("42501", "select sb.create_state_table('sb_internal.not_mine', 'x integer')")
	s.ExecError("42P07", "select sb.create_state_table('room.mine', 'x integer')")
	s.ExecError("42501", "select sb.drop_state_table('public.kept')")
	a.ExecError("SB002", "select sb.drop_state_table('public.other')")
	// The right lent for the key is for the key alone and for the moment alone.
	s.ExecError("SB002", "select sb.create_state_table('room.blocks', 'x uuid references sb.conversation_group (conversation_group_id)')")
	s.ExecError("42501", "create table room.later (x uuid references sb.conversation_group (conversation_group_id))")
	s.Exec("create function room.steal() returns integer language plpgsql as $$ begin create table room.stolen (x uuid references sb.conversation_group (conversation_group_id)); return 1; end $$")
	s.ExecError("SB002", "select sb.create_state_table('room.blocks', 'x integer); select room.steal(); create table room.more (y integer')")
	wantRows(t, "nothing was left", s.Query("select tablename from pg_tables where schemaname = 'room'"), "mine")
	wantValue(t, "privileges", a.Value("select has_any_column_privilege($1, 'sb.conversation_group', 'references')", role), "f")

	// The built-in table.
	_, right := startTalk(a, "x")
	group := groupOf(a, right)
	wantValue(t, "none", b.Value("select sb.get_state($1::uuid)", group), "NULL")
	b.Exec(`select sb.set_state($1::uuid, '{"step": 1}')`, group)
	b.Exec(`select sb.set_state($1::uuid, sb.get_state($1::uuid) || '{"more": null}')`, group)
	wantValue(t, "state", b.Value("select sb.get_state($1::uuid)", group), `{"more": null, "step": 1}`)
	wantRows(t, "view", a.Query("select state from sb.conversation_state where conversation_group_id = $1::uuid", group), `{"more": null, "step": 1}`)
	b.Exec("select sb.set_state($1::uuid, 'null')", group) // JSON null is a value
	wantValue(t, "a json null", b.Value("select sb.get_state($1::uuid)", group), "null")
	b.Exec("select sb.set_state($1::uuid, null)", group)
	wantRows(t, "removed", a.Query("select * from sb.conversation_state"))
	b.Exec("select sb.set_state($1::uuid, '1')", group)
	b.Exec("select sb.end_conversation($1::uuid)", right)
	wantRows(t, "gone with the group", a.Query("select * from sb.conversation_state"))
}

// A dialog of a service with itself, and both of its sides in one group: locks, order and ends are those of any other.
func TestDialogWithOneself(t *testing.T) {
	t.Parallel()
	_, a, _ := newTalk(t)
	for _, oneGroup := range []bool{false, true} {
		left := a.Value("select sb.begin_dialog('Left', 'Left', 'Talk')")
		say(a, left, "zero", "one")
		right := peerOf(a, left)
		if oneGroup {
			a.Exec("select sb.move_conversation($1::uuid, $2::uuid)", right, groupOf(a, left))
		}
		a.Begin()
		wantRows(t, "received", a.Query("select conversation_handle, sb.body_text(message_body) from sb.receive('LeftQueue')"), right+"|zero", right+"|one")
		say(a, right, "back")
		say(a, left, "two")
		a.Exec("select sb.end_conversation($1::uuid)", right)
		a.Commit()
		wantRows(t, "answered", take(a, "'LeftQueue'"), "back", "EndDialog")
		a.Exec("select sb.end_conversation($1::uuid)", left)
		wantRows(t, "nothing more", take(a, "'LeftQueue'"))
		wantRows(t, "left over", leftOver(a))
	}
}

// Two first SENDs at once: the second waits and counts on, or is the first when the other rolls back.
// Rules: R-168
func TestTwoFirstSends(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for name, end := range map[string]func(){"commit": a.Commit, "rollback": a.Rollback} {
		left := beginTalk(a)
		a.Begin()
		say(a, left, "one")
		result := b.GoExec("select sb.send($1::uuid, 'Note', 'two')", left)
		pgtest.WaitBlocked(t, b, a)
		end()
		wantCode(t, name, wait(t, result), "")
		want := []string{"0|one", "1|two"}
		if name == "rollback" {
			want = []string{"0|two"}
		}
		wantRows(t, name, b.Query("select message_sequence_number, sb.body_text(message_body) from sb.receive('RightQueue')"), want...)

		// END against a first SEND.
		left = beginTalk(a)
		a.Begin()
		say(a, left, "one")
		result = b.GoExec("select sb.end_conversation($1::uuid)", left)
		pgtest.WaitBlocked(t, b, a)
		end()
		wantCode(t, name, wait(t, result), "")
		want = []string{"one", "EndDialog"}
		if name == "rollback" {
			want = nil
		}
		wantRows(t, name, take(b, "'RightQueue'"), want...)
	}
}

// SEND sees an Error that lies before it also on a conversation that this transaction has moved, or begun.
func TestSendAfterErrorInOneTransaction(t *testing.T) {
	t.Parallel()
	_, a, _ := newTalk(t)
	moved, other := beginTalk(a), beginTalk(a)
	a.Exec("select sb.error_broker_conversations()")
	a.Begin()
	a.Exec("select sb.move_conversation($1::uuid, $2::uuid)", moved, groupOf(a, other))
	a.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", moved)
	a.Rollback()
	a.Begin()
	begun := beginTalk(a)
	a.Exec("select sb.error_broker_conversations()")
	a.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", begun)
	a.Rollback()
	// Moved in the transaction in which it sends for the first time.
	moved = beginTalk(a)
	a.Begin()
	a.Exec("select sb.move_conversation($1::uuid, $2::uuid)", moved, groupOf(a, beginTalk(a)))
	say(a, moved, "zero", "one")
	a.Commit()
	wantRows(t, "received", take(a, "'RightQueue'"), "zero", "one")
}

// A conversation without a group, as 0.1.0 could leave it, can be ended; it takes no other with it, and nobody waits for it.
func TestConversationWithoutGroup(t *testing.T) {
	t.Parallel()
	_, a, _ := newTalk(t)
	handle := beginTalk(a)
	a.Exec("delete from sb.conversation_group")
	a.ExecError("S8426", "select * from sb.receive('LeftQueue', for_conversation => $1::uuid)", handle)
	sibling := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation => $1::uuid)", handle)
	a.Exec("select sb.error_broker_conversations()")
	wantRows(t, "received", take(a, "'LeftQueue', for_conversation => '"+sibling+"'"), "Error -9719")
	for _, h := range []string{handle, sibling} {
		a.Exec("select sb.end_conversation($1::uuid)", h)
	}
	wantRows(t, "left over", leftOver(a))
}

// The group id in a message row is a hint: a message that came while its conversation was moved has an old one, and
// hides nothing that lies behind it in that group.
func TestOldHintBehindLockedGroups(t *testing.T) {
	t.Parallel()
	_, a, reader := newTalk(t)
	left, busy := startTalk(a, "busy")
	a.Exec("select sb.send_batch($1::uuid, 'Note', array_fill('busy'::bytea, array[400]))", left)
	_, moved := startTalk(a, "moved")
	group := groupOf(a, moved)
	a.Exec("update sb_internal.endpoint set conversation_group_id = $1::uuid where conversation_handle = $2::uuid", groupOf(a, busy), moved)
	_, free := startTalk(a, "free")
	a.Exec("update sb_internal.message set conversation_group_id = $1::uuid where conversation_handle = $2::uuid", group, free)
	a.Exec("update sb_internal.endpoint set conversation_group_id = $1::uuid where conversation_handle = $2::uuid", group, free)
	reader.Begin()
	reader.Exec("select from sb.conversation_group where conversation_group_id = $1::uuid for update", groupOf(a, busy))
	for range 20 {
		a.Begin()
		wantRows(t, "received", take(a, "'RightQueue'"), "free")
		a.Rollback()
		a.Exec("select sb.alter_queue('RightQueue', enabled => true)") // forgets the rollback
	}
}
