package sqltest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// hostileNames are names that some layer might trip over. Each is legal and stored as it is.
var hostileNames = []string{
	`'; drop table x; --`, `"quoted"`, `it's`, `$$ $1 $tag$`, `%s %I %L %`, `a.b.c`, `[dbo].[q]`, `//host/path?x=1&y=<z>`,
	"tab\tand\nnewline", " leading and trailing ", "🐘", "e\u0301", "\u202eright to left", `back\slash \x00 \u0041`, "ANY", "null", "CURRENT DATABASE",
	strings.Repeat("x", 128), strings.Repeat("🐘", 128),
}

// A whole conversation between objects of every such name, with what shows the names in XML and JSON.
// Rules
func TestHostileNames(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for i, name := range hostileNames {
		other := strings.ToUpper(name)
		if other == name {
			other = "e\u0301" + string([]rune(name)[:min(len([]rune(name)), 120)])
		}
		for _, n := range []string{name, other} { // differing in case only: two objects
			a.Exec("select sb.create_message_type($1)", n)
			a.Exec("select sb.create_contract($1, sent_by_any => array[$1])", n)
			a.Exec("select sb.create_queue($1, retention => true)", n)
			a.Exec("select sb.create_service($1, $1, array[$1])", n)
			a.Exec("select sb.create_route($1, 'LOCAL', $1)", n)
			a.Exec("select sb.create_broker_priority($1, $1, $1, $1, 7::smallint)", n)
		}
		a.Exec("select sb.create_event_notification($1, $1, 'BROKER_QUEUE_DISABLED', $2)", name, other)
		left := a.Value("select sb.begin_dialog($1, $2, $1)", name, other)
		a.Exec("select sb.send($1::uuid, $2, $2)", left, name)
		wantRows(t, name+": not accepted, since the other does not list the contract", take(a, "'"+strings.ReplaceAll(name, "'", "''")+"'"), "Error -8408")
		a.Exec("select sb.end_conversation($1::uuid)", left)
		a.Exec("select sb.alter_service($1, add_contracts => array[$2])", other, name)
		left = a.Value("select sb.begin_dialog($1, $2, $1)", name, other)
		a.Exec("select sb.send($1::uuid, $2, $2)", left, name)
		got := b.Query("select service_name, service_contract_name, message_type_name, sb.body_text(message_body) from sb.receive($1, for_group => $2::uuid)",
			other, groupOf(a, peerOf(a, left)))
		wantRows(t, name, got, other+"|"+name+"|"+name+"|"+name)
		a.Exec("select sb.alter_queue($1, enabled => false)", other)
		a.Exec("select sb.send($1::uuid, $2, $2)", left, name)
		if status := a.Value("select sb.get_transmission_status($1::uuid)", left); !strings.Contains(status, other) {
			t.Errorf("%s: status %q", name, status)
		}
		a.Exec("select sb.alter_queue($1, enabled => true)", other)
		a.Exec("select sb.end_conversation($1::uuid, 1, $2)", left, name)
		wantRows(t, name, b.Query("select sb.error_description(message_body) from sb.receive($1, 1)", other), strings.ReplaceAll(name, "\r", "\n"))
		b.Exec("select sb.start_waiting($1)", other)
		b.Exec("select sb.stop_waiting($1)", other)
		if i%4 == 0 {
			a.ExecError("42710", "select sb.create_queue($1)", name)
		}
		b.Exec("select sb.end_conversation($1::uuid)", peerOfGone(b, other))
	}
	wantRows(t, "left over", leftOver(a))
}

// peerOfGone returns the only conversation handle of a service.
func peerOfGone(s *pgtest.Session, service string) string {
	return s.Value("select e.conversation_handle from sb.conversation_endpoints as e join sb.services as v on v.service_id = e.service_id where v.name = $1", service)
}

// Every argument of every verb null, alone and all together: a code of the registry, nothing changed.
func TestNullsEverywhere(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "zero")
	registry := map[string]bool{}
	for _, code := range b.Query(`select unnest(regexp_matches(p.prosrc, 'when ''(\w{5})'' then', 'g')) from pg_proc as p where p.oid = 'sb_internal._raise'::regproc`) {
		registry[code] = true
	}
	if len(registry) < 50 {
		t.Fatalf("the registry has %d codes", len(registry))
	}
	// All public functions that take arguments, with good values for them by type and name.
	good := map[string]string{
		"conversation_handle": "'" + left + "'", "conversation_handles": "'{" + left + "}'", "message_type": "'Note'", "queue_name": "'RightQueue'",
		"from_service": "'Left'", "to_service": "'Right'", "on_contract": "'Talk'", "conversation_group_id": "'" + groupOf(a, left) + "'",
		"for_conversation": "null", "for_group": "null", "related_conversation": "null", "related_conversation_group": "null",
		"error_code": "null", "error_description": "null", "cleanup": "false", "broker_instance": "null", "lifetime": "null",
		"max_messages": "1", "encryption": "true", "state": "'1'", "table_name": "'t'", "columns": "'x integer'", "drop_on_end": "true", "if_exists": "false", "if_not_exists": "false",
	}
	verbs := []string{
		"begin_dialog", "send", "send_batch", "multicast", "receive", "get_conversation_group", "move_conversation", "end_conversation",
		"begin_conversation_timer", "cancel_conversation_timer", "get_transmission_status", "error_code", "error_description", "body_text", "body_json",
		"body_xml", "create_state_table", "drop_state_table", "get_state", "set_state", "deliver", "start_waiting", "stop_waiting",
	}
	rows := b.Query(`
select p.proname, string_agg(coalesce(a.name, '') || ' ' || format_type(a.type, null), ',' order by a.i)
  from pg_proc as p
 cross join lateral unnest(p.proargtypes::oid[], p.proargnames[1:p.pronargs]) with ordinality as a (type, name, i)
 where p.pronamespace = 'sb'::regnamespace and p.proname = any ($1)
 group by p.oid, p.proname`, verbs)
	if len(rows) < len(verbs) {
		t.Fatalf("only %d functions: %q", len(rows), rows)
	}
	before := pgtest.Fingerprint(a)
	for _, row := range rows {
		name, list, _ := strings.Cut(row, "|")
		arguments := strings.Split(list, ",")
		for nulls := -1; nulls < len(arguments); nulls++ {
			var values []string
			for i, argument := range arguments {
				key, kind, _ := strings.Cut(argument, " ")
				value, known := good[key]
				switch {
				case nulls == -1 || nulls == i:
					value = "null"
				case key == "timeout":
					value = "'1 s'"
				case key == "message_body":
					value = map[string]string{"json": "'1'", "jsonb": "'1'", "xml": "'<a/>'"}[kind]
					if value == "" {
						value = "'x'"
					}
				case key == "message_bodies":
					value = "'{x}'"
				case !known:
					t.Fatalf("%s: no value for %q", name, argument)
				}
				values = append(values, value+"::"+kind)
			}
			call := "select sb." + name + "(" + strings.Join(values, ", ") + ")"
			b.Begin()
			_, err := b.Conn.Exec(t.Context(), call)
			b.Rollback()
			if code := pgtest.SQLState(err); err != nil && !registry[code] && code != "42P01" {
				t.Errorf("%s: %v", call, err)
			}
			if after := pgtest.Fingerprint(a); after != before {
				t.Fatalf("%s changed something", call)
			}
		}
	}
	a.Exec("select sb.alter_queue('RightQueue', enabled => true)")
	wantRows(t, "all is well", take(b, "'RightQueue', for_conversation => '"+right+"'"), "zero")
}

// Intervals and numbers from the far ends.
// Rules: R-133
func TestExtremeNumbers(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "zero")
	intervals := []string{"178000000 years", "-178000000 years", "2147483647 days", "-2147483648 days", "1 microsecond", "-1 microsecond", "0", "1 mon -30 days", "-1 mon 31 days"}
	if a.Value("select current_setting('server_version_num')::integer >= 170000") == "t" {
		intervals = append(intervals, "infinity", "-infinity")
	}
	known := map[string]bool{"": true, "22023": true, "S8411": true, "S8410": true}
	for _, interval := range intervals {
		for _, call := range []string{
			"sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '" + interval + "')",
			"sb.begin_conversation_timer('" + left + "', '" + interval + "')",
			"sb.receive('RightQueue', timeout => '" + interval + "')", // there is something: returns at once
			"sb.receive('RightQueue', for_conversation => '" + right + "', timeout => '" + interval + "')",
			"sb.get_conversation_group('RightQueue', '" + interval + "')",
			"sb.create_route('r', 'LOCAL', lifetime => '" + interval + "')",
		} {
			b.Begin()
			_, err := b.Conn.Exec(t.Context(), "select "+call)
			b.Rollback()
			a.Exec("select sb.alter_queue('RightQueue', enabled => true)")
			if code := pgtest.SQLState(err); !known[code] && code != "S9746" {
				t.Errorf("%s: %v", call, err)
			}
		}
	}
	for _, most := range []string{"1", "2147483647"} {
		b.Begin()
		wantRows(t, most, take(b, "'RightQueue', "+most), "zero")
		b.Rollback()
	}
	b.Exec("select sb.end_conversation($1::uuid, 2147483647, repeat('🐘', 3000))", right)
	wantRows(t, "the largest error", a.Query("select sb.error_code(message_body), sb.error_description(message_body) = repeat('🐘', 3000) from sb.receive('LeftQueue')"), "2147483647|t")
	// Handles of every look.
	for _, handle := range []string{"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"} {
		b.ExecError("S8426", "select sb.send($1::uuid, 'Note')", handle)
		b.ExecError("S8426", "select * from sb.receive('RightQueue', for_conversation => $1::uuid)", handle)
		b.ExecError("S8436", "select * from sb.receive('RightQueue', for_group => $1::uuid)", handle)
	}
	b.ExecError("22P02", "select sb.send('no uuid', 'Note')")
	// Group ids of every look may be chosen.
	for _, group := range []string{"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"} {
		handle := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $1::uuid)", group)
		say(a, handle, "x")
		wantRows(t, group, take(b, "'RightQueue'"), "x")
		say(b, peerOf(a, handle), "back")
		wantRows(t, group, take(a, "'LeftQueue'"), "back")
	}
}

// Bodies against every kind of validation: what passes arrives unchanged, what does not becomes an Error at both
// sides, and the dialog of somebody else goes on.
// Rules
func TestBodiesByValidation(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec(`
create function public.has_a(xml) returns boolean language sql return xmlexists('//a' passing by ref $1);
create function public.has_a(jsonb) returns boolean language sql return $1 ? 'a';
create function public.raises(jsonb) returns boolean language plpgsql as $$ begin raise exception 'no'; end $$;
create function public.unsure(jsonb) returns boolean language sql return null::boolean;
select sb.create_message_type('None', 'NONE');
select sb.create_message_type('Empty', 'EMPTY');
select sb.create_message_type('Xml', 'WELL_FORMED_XML');
select sb.create_message_type('ValidXml', 'VALID_XML', 'public.has_a(xml)');
select sb.create_message_type('Json', 'WELL_FORMED_JSON');
select sb.create_message_type('ValidJson', 'VALID_JSON', 'public.has_a(jsonb)');
select sb.create_message_type('Raises', 'VALID_JSON', 'public.raises(jsonb)');
select sb.create_message_type('Unsure', 'VALID_JSON', 'public.unsure(jsonb)');
select sb.create_message_type('Schema', 'VALID_JSON', schema => '{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}');
select sb.create_contract('All', '{None,Empty,Xml,ValidXml,Json,ValidJson,Raises,Unsure,Schema}');
select sb.alter_service('Right', add_contracts => '{All}')`)
	laughs := `<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><l>&c;</l>`
	external := `<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]><a>&a;</a>`
	deep := strings.Repeat("[", 100000)
	deepXML := strings.Repeat("<a>", 100000)
	const xmlOK, jsonOK = "<x><a/></x>", `{"a": 1}`
	for kind, bodies := range map[string]map[string]bool{
		"None":      {"": true, "x": true, "\x00\xff": true, laughs: true},
		"Empty":     {"": true, "x": false, " ": false, "\x00": false},
		"Xml":       {"": true, xmlOK: true, "text only": true, "<a/><b/>": true, "<a>": false, "<a></b>": false, "\x00": false, "<a>\x01</a>": false, "\xff\xfe<\x00a\x00/\x00>\x00": false, "<a>\xff</a>": false, laughs: false, external: false, deepXML: false, "<a b='1' b='2'/>": false, "<?xml version='1.0' encoding='nonsense'?><a/>": false},
		"ValidXml":  {"": true, xmlOK: true, "<x/>": false, "<a>": false, laughs: false, external: false},
		"Json":      {"": true, jsonOK: true, "1": true, "null": true, "{": false, "{'a': 1}": false, "\x00": false, "[1,]": false, "\xff": false, deep: false, "NaN": false, "01": false},
		"ValidJson": {"": true, jsonOK: true, "{}": false, "{": false, `{"a": "\u0000"}`: false, `{"a": 1e1000000}`: false},
		"Raises":    {"": true, jsonOK: false},
		"Unsure":    {"": true, jsonOK: false},
		"Schema":    {"": true, jsonOK: true, `{"a": "x"}`: false, "{}": false, "[]": false, "{": false, deep: false},
	} {
		for body, valid := range bodies {
			what := kind + " " + fmt.Sprintf("%.40q", body)
			left := a.Value("select sb.begin_dialog('Left', 'Right', 'All')")
			a.Exec("select sb.send($1::uuid, 'None', 'first')", left)
			before := a.Value("select send_sequence from sb.conversation_endpoints where conversation_handle = $1::uuid", left)
			a.Exec("select sb.send($1::uuid, $2, $3::bytea)", left, kind, []byte(body))
			if !valid {
				code := "Error -9615"
				if kind == "Empty" {
					code = "Error -8430"
				}
				wantRows(t, what+": sender", take(a, "'LeftQueue'"), code)
				wantRows(t, what+": target", take(b, "'RightQueue'"), code, "first")
				wantValue(t, what+": states", stateOf(a, left)+stateOf(a, peerOf(a, left)), "ERER")
				wantValue(t, what+": no number is used", a.Value("select send_sequence from sb.conversation_endpoints where conversation_handle = $1::uuid", left), before)
				a.ExecError("S8429", "select sb.send($1::uuid, 'None')", left)
			} else {
				got := b.Query("select message_sequence_number, message_type_name, encode(coalesce(message_body, ''), 'hex') from sb.receive('RightQueue')")
				wantRows(t, what, got, "0|None|"+fmt.Sprintf("%x", "first"), "1|"+kind+"|"+fmt.Sprintf("%x", body))
				wantRows(t, what+": sender", take(a, "'LeftQueue'"))
			}
			right := peerOf(a, left)
			a.Exec("select sb.end_conversation($1::uuid, cleanup => true), sb.end_conversation($2::uuid, cleanup => true)", left, right)
		}
	}
	// The first message: there is no target yet, and none comes to be.
	left := a.Value("select sb.begin_dialog('Left', 'Right', 'All')")
	a.Exec("select sb.send($1::uuid, 'Xml', '<a>')", left)
	wantRows(t, "sender", take(a, "'LeftQueue'"), "Error -9615")
	wantValue(t, "target", stateOf(a, peerOf(a, left)), "")
	a.Exec("select sb.end_conversation($1::uuid)", left)
	// A batch with one bad body is bad.
	left = a.Value("select sb.begin_dialog('Left', 'Right', 'All')")
	for _, kind := range []string{"Xml", "ValidXml"} {
		a.Exec("select sb.send($1::uuid, 'None', 'first')", left)
		a.Exec("select sb.send_batch($1::uuid, $2, array['<a/>', '<a>', '<a/>']::bytea[])", left, kind)
		wantRows(t, "batch of "+kind, take(b, "'RightQueue'"), "Error -9615", "first")
		a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", left)
		left = a.Value("select sb.begin_dialog('Left', 'Right', 'All')")
	}
	a.Exec("select sb.end_conversation($1::uuid)", left)
	// With validate_on_send the SEND fails, nothing is sent, and the dialog lives on.
	a.Exec("select sb.set_option('validate_on_send', 'on')")
	left = a.Value("select sb.begin_dialog('Left', 'Right', 'All')")
	a.Exec("select sb.send($1::uuid, 'None', 'first')", left)
	for _, kind := range []string{"ValidXml", "ValidJson", "Raises", "Unsure", "Schema", "Json", "Xml"} {
		before := pgtest.Fingerprint(a)
		a.ExecError("S9615", "select sb.send($1::uuid, $2, '<x>')", left, kind)
		a.ExecError("S9615", "select sb.multicast(array[$1::uuid], $2, '<x>')", left, kind)
		wantValue(t, kind, pgtest.Fingerprint(a), before)
	}
	a.Exec("select sb.send($1::uuid, 'ValidXml', '<a/>')", left)
	wantRows(t, "delivered", take(b, "'RightQueue'"), "first", "<a/>")
}

// A validator runs with the rights and under the name of whoever sends, never of the owner of sb.
func TestValidatorRunsAsTheSender(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	sender := db.CreateRole(t, "sender")
	a.Exec(`
create table public.seen (who name, what xml);
create table public.secret (x integer);
create function public.note(xml) returns boolean language plpgsql as $$
begin
  insert into public.seen values (current_user, $1);
  return true;
end $$;
create function public.peeks(xml) returns boolean language plpgsql as $$
begin
  perform 1 from public.secret;
  return true;
end $$;
create function public.resets(xml) returns boolean language plpgsql as $$
begin
  perform set_config('search_path', 'pg_temp', true);
  return true;
end $$;
grant insert on public.seen to public;
grant execute on all functions in schema public to public;
select sb.create_message_type('Noted', 'VALID_XML', 'public.note(xml)');
select sb.create_message_type('Peeked', 'VALID_XML', 'public.peeks(xml)');
select sb.create_message_type('Reset', 'VALID_XML', 'public.resets(xml)');
select sb.create_contract('Checked', '{Noted,Peeked,Reset}');
select sb.alter_service('Right', add_contracts => '{Checked}');
select sb.create_queue('SenderQueue');
select sb.create_service('Sender', 'SenderQueue')`)
	a.Exec("select sb.grant_receive('SenderQueue', $1), sb.grant_references('Checked', $1)", sender)
	s := db.SessionAs(t, "sender", sender)
	handle := s.Value("select sb.begin_dialog('Sender', 'Right', 'Checked')")
	s.Exec("select sb.send($1::uuid, 'Noted', '<a/>')", handle)
	wantRows(t, "who ran it", a.Query("select who = $1, what from public.seen", sender), "t|<a/>")
	s.Exec("select sb.send($1::uuid, 'Reset', '<r/>')", handle)
	wantRows(t, "delivered", take(b, "'RightQueue'"), "<a/>", "<r/>")
	// Lack of rights is no verdict.
	s.ExecError("42501", "select sb.send($1::uuid, 'Peeked', '<a/>')", handle)
	a.Exec("grant select on public.secret to " + sender)
	s.Exec("select sb.send($1::uuid, 'Peeked', '<a/>')", handle)
	wantRows(t, "delivered", take(b, "'RightQueue'"), "<a/>")
	// A type without a validator beside it is not slowed by it, and the owner of sb never ran user code.
	wantRows(t, "nobody else", a.Query("select 1 from public.seen where who = current_user"))
	// Somebody who may not set validators cannot make others run his code.
	s.ExecError("42501", "select sb.create_message_type('Mine', 'VALID_XML', 'public.note(xml)')")
	s.ExecError("42501", "select sb.alter_message_type('Noted', 'VALID_XML', 'public.peeks(xml)')")
}

// A caller plants functions, operators, types and tables, in pg_temp and in a schema put first on the path: the verbs
// work as before, and nothing planted is ever run or read.
func TestPlantedObjects(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	mallory := db.CreateRole(t, "mallory")
	// As bad as it may get: mallory has a schema of her own and may create temporary objects.
	a.Exec("create schema evil authorization " + pgx.Identifier{db.Owner}.Sanitize())
	a.Exec("grant all on schema evil to public")
	a.Exec("create table public.run (what text, who name); grant insert on public.run to public")
	a.Exec(`
create function public.good(xml) returns boolean language sql return true;
grant execute on function public.good to public;
select sb.create_message_type('Checked', 'VALID_XML', 'public.good(xml)');
select sb.create_queue('OthersQueue');
select sb.create_service('Others', 'OthersQueue');
select sb.create_contract('Check', sent_by_any => '{Checked}');
select sb.alter_service('Left', add_contracts => '{Check}');
select sb.alter_service('Right', add_contracts => '{Check}')`)
	a.Exec("select sb.grant_receive('LeftQueue', $1), sb.grant_receive('RightQueue', $1), sb.grant_references('Talk', $1), sb.grant_references('Check', $1)", mallory)
	s := db.SessionAs(t, "mallory", mallory)
	for _, schema := range []string{"evil", "pg_temp"} {
		plant := func(sql string) { s.Exec(strings.ReplaceAll(sql, "SCHEMA", schema)) }
		plant(`
create or replace function SCHEMA.trap(what text) returns void language plpgsql as $$
begin
  insert into public.run values (what, current_user);
end $$`)
		for _, f := range []string{"now()", "clock_timestamp()", "gen_random_uuid()", "current_database()"} {
			name := strings.TrimSuffix(f, "()")
			kind := map[string]string{"gen_random_uuid": "uuid", "current_database": "name"}[name]
			if kind == "" {
				kind = "timestamptz"
			}
			plant("create function SCHEMA." + name + "() returns " + kind + " language plpgsql as $$ begin perform SCHEMA.trap('" + name + "'); return pg_catalog." + name + "(); end $$")
		}
		for _, f := range []string{
			"lower(text) returns text", "char_length(text) returns integer", "octet_length(bytea) returns integer", "cardinality(uuid[]) returns integer",
			"convert_to(text, name) returns bytea", "convert_from(bytea, name) returns text", "pg_notify(text, text) returns void", "pg_sleep(double precision) returns void",
			"nextval(regclass) returns bigint", "quote_ident(text) returns text", "format(text, text) returns text", "btrim(text) returns text", "pg_has_role(oid, oid, text) returns boolean",
			"_raise(text, text[], text) returns void", "_now() returns timestamptz", "_send(name, uuid, text, bytea[], boolean, boolean) returns boolean",
		} {
			plant("create function SCHEMA." + f + " language plpgsql as $$ begin perform SCHEMA.trap('" + strings.ReplaceAll(f, "'", "") + "'); return" +
				map[bool]string{true: "", false: " null"}[strings.HasSuffix(f, "void")] + "; end $$")
		}
		for _, kind := range []string{"uuid", "text", "integer", "bigint", "boolean", "timestamptz", "interval", "name", "bytea"} {
			plant("create function SCHEMA.eq(" + kind + ", " + kind + ") returns boolean language plpgsql as $$ begin perform SCHEMA.trap('= " + kind + "'); return true; end $$")
			for _, operator := range []string{"=", "<>", "<", "<=", ">", ">="} {
				plant("create operator SCHEMA." + operator + " (leftarg = " + kind + ", rightarg = " + kind + ", function = SCHEMA.eq)")
			}
		}
		plant("create function SCHEMA.cat(text, text) returns text language plpgsql as $$ begin perform SCHEMA.trap('||'); return $1; end $$")
		plant("create operator SCHEMA.|| (leftarg = text, rightarg = text, function = SCHEMA.cat)")
		for _, name := range []string{"endpoint", "message", "queue", "broker", "transmission", "conversation_group", "uuid", "text", "record", "unsettled", "regclass"} {
			plant("create table SCHEMA." + name + " (x integer)")
		}
		for _, name := range []string{"int4", "bool", "bytea", "tid", "name"} {
			plant("create domain SCHEMA." + name + " as pg_catalog." + name + " check (false)")
		}
	}
	for _, path := range []string{"evil, pg_catalog", "pg_temp, evil, pg_catalog", "evil, pg_temp, public, pg_catalog", ""} {
		s.Exec("set search_path = " + map[bool]string{true: "''", false: path}[path == ""])
		left := s.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '1 h', broker_instance => 'current database')")
		s.Exec("select sb.send($1::pg_catalog.uuid, 'Note', 'zero'::pg_catalog.text), sb.send($1::pg_catalog.uuid, 'Note', 'one'::pg_catalog.bytea), sb.send($1::pg_catalog.uuid, 'Note', '{}'::pg_catalog.jsonb), sb.send($1::pg_catalog.uuid, 'Note', '<a/>'::pg_catalog.xml), sb.send($1::pg_catalog.uuid, 'Note')", left)
		s.Exec("select sb.send_batch($1::pg_catalog.uuid, 'Note', '{a,b}'), sb.multicast(array[$1::pg_catalog.uuid], 'Note', 'c')", left)
		s.Exec("select sb.begin_conversation_timer($1::pg_catalog.uuid, '1 min'), sb.cancel_conversation_timer($1::pg_catalog.uuid), sb.get_transmission_status($1::pg_catalog.uuid)", left)
		s.Exec("select sb.begin_conversation_timer($1::pg_catalog.uuid, '1 min')", left)
		group := s.Value("select sb.get_conversation_group('RightQueue', '1 s')")
		s.Exec("select sb.set_state($1::pg_catalog.uuid, '1'), sb.get_state($1::pg_catalog.uuid)", group)
		s.Exec("select sb.move_conversation($1::pg_catalog.uuid, $2::pg_catalog.uuid)", peerOf(a, left), group)
		checked := s.Value("select sb.begin_dialog('Left', 'Right', 'Check', related_conversation => $1::pg_catalog.uuid)", left)
		s.Exec("select sb.send($1::pg_catalog.uuid, 'Checked', '<a/>')", checked)
		got := s.Query("select coalesce(pg_catalog.convert_from(message_body, 'UTF8'), '-') from sb.receive('RightQueue', for_group => $1::pg_catalog.uuid, timeout => '1 s')", group)
		if len(got) != 8 {
			t.Errorf("path %q: received %q", path, got)
		}
		s.Exec("select * from sb.receive('RightQueue', 1)")
		s.Exec("select sb.start_waiting('RightQueue'), sb.stop_waiting('RightQueue')")
		for _, view := range []string{"queue_messages", "conversation_endpoints", "conversation_groups", "transmission_queue", "service_queues", "services", "broker", "options", "queue_statistics", "conversation_state"} {
			s.Exec("select pg_catalog.count(*) from sb." + view)
		}
		s.ExecError("S8426", "select sb.send('deadbeef-dead-beef-dead-beefdeadbeef', 'Note')")
		s.ExecError("S0208", "select * from sb.receive('none')")
		s.ExecError("42501", "select sb.create_queue('Mine')")
		s.ExecError("42501", "select sb.drop_queue('RightQueue')")
		s.ExecError("42501", "select sb.end_conversation($1::pg_catalog.uuid)", a.Value("select sb.begin_dialog('Others', 'Right', 'Talk')"))
		s.Exec("select sb.create_state_table('evil.state_of_mallory', 'x integer', drop_on_end => false)")
		s.ExecError("42501", "select sb.create_state_table('evil.state_of_mallory', 'x integer')")
		s.Exec("select sb.drop_state_table('evil.state_of_mallory')")
		s.Exec("select sb.end_conversation($1::pg_catalog.uuid, 3, 'x'), sb.end_conversation($2::pg_catalog.uuid)", left, checked)
		for _, handle := range a.Query("select conversation_handle from sb.conversation_endpoints") {
			a.Exec("select sb.end_conversation($1::uuid, cleanup => true)", handle)
		}
	}
	wantRows(t, "what planted code was run, as whom", a.Query("select what, who from public.run"))
	wantRows(t, "nothing left in the queue", take(b, "'RightQueue'"))
}

// Only USAGE on sb and EXECUTE on the verbs lead in: the inner schema is closed.
func TestInnerSchemaIsClosed(t *testing.T) {
	t.Parallel()
	db, a, _ := newTalk(t)
	role := db.CreateRole(t, "user")
	a.Exec("select sb.grant_receive('RightQueue', $1)", role)
	a.Exec("create schema room; grant all on schema room to public")
	s := db.SessionAs(t, "user", role)
	for _, sql := range []string{
		"select * from sb_internal.message", "select sb_internal._now()", "select sb_internal._receive('postgres', 'RightQueue', null, null, null, null)",
		"delete from sb_internal.endpoint", "select * from sb.conversation_group", "delete from sb.conversation_group",
		"create table room.t (g uuid references sb.conversation_group (conversation_group_id))", "delete from sb.conversation_group",
		"select nextval('sb_internal.queuing_order')", "create function sb.f() returns integer language sql return 1",
	} {
		s.ExecError("42501", sql)
	}
}
