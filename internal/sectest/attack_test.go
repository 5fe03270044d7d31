package sectest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// newTalk returns a database with services Left and Right, a queue each, on contract Talk with message type Note, a
// schema room in which everybody may create things, and a role alice that may receive from LeftQueue and use Talk.
func newTalk(t *testing.T) (db *pgtest.DB, owner, alice *pgtest.Session) {
	t.Helper()
	db = pgtest.New(t)
	owner = db.Session(t, "owner")
	owner.Exec(`
create schema room; grant all on schema room to public;
select sb.create_message_type('Note'), sb.create_queue('LeftQueue'), sb.create_queue('RightQueue');
select sb.create_contract('Talk', sent_by_any => '{Note}');
select sb.create_service('Left', 'LeftQueue', '{Talk}'), sb.create_service('Right', 'RightQueue', '{Talk}')`)
	role := db.CreateRole(t, "alice")
	owner.Exec("select sb.grant_receive('LeftQueue', $1::name), sb.grant_references('Talk', $1::name)", role)
	return db, owner, db.SessionAs(t, "alice", role)
}

const beginTalk = "select sb.begin_dialog('Left', 'Right', 'Talk')"

// Triggers of a state table run in the session of whoever ends a conversation, so it is for admins to make one. They
// run as the owner of the table, and with whatever the table has become END does what it should.
func TestStateTableTricks(t *testing.T) {
	t.Parallel()
	db, owner, alice := newTalk(t)
	alice.ExecError("42501", "select sb.create_state_table('room.t', '')")
	alice.Exec("select sb.create_state_table('room.kept', '', drop_on_end => false)")

	ann := db.CreateRole(t, "ann")
	owner.Exec("select sb.grant_admin($1::name)", ann)
	a := db.SessionAs(t, "ann", ann)
	a.Exec(`
create table room.log (what text, who name); grant insert on room.log to public;
create function room.note(what text) returns integer language plpgsql as $$ begin insert into room.log values (what, current_user); return 1; end $$;
select sb.create_state_table('room.t', 'x integer default room.note(''default''), y integer generated always as (x + 1) stored');
create function room.trick() returns trigger language plpgsql as $$
declare
  step text;
begin
  perform room.note(tg_level);
  foreach step in array array['set role ` + db.Owner + `', 'reset role', 'set session authorization default'] loop
    begin
      execute step;
      perform room.note(step);
    exception when insufficient_privilege then
      perform room.note('refused');
    end;
  end loop;
  return old;
end $$;
create trigger of_row before delete on room.t for each row execute function room.trick();
create trigger of_statement before delete on room.t for each statement execute function room.trick();
create rule also as on delete to room.t do also insert into room.log values ('rule', current_user);
grant select, insert on room.t to public;
grant usage on schema room to public`)
	who := func() []string {
		t.Helper()
		rows := a.Query("select distinct l.what, replace(l.who, $1, '') from room.log as l order by 1, 2", db.Name+"_")
		a.Exec("delete from room.log")
		return rows
	}
	handle := alice.Value(beginTalk)
	alice.Exec("insert into room.t select conversation_group_id from sb.conversation_endpoints")
	wantRows(t, "a default runs as whoever inserts", who(), "default|alice")
	alice.Exec("select sb.end_conversation($1::uuid)", handle)
	wantRows(t, "triggers and rules run as the table's owner", who(), "ROW|ann", "STATEMENT|ann", "refused|ann", "rule|ann")
	wantValue(t, "rows left", a.Value("select count(*) from room.t"), "0")
	wantValue(t, "whoever ended", alice.Value("select current_user"), db.Name+"_alice")

	// Renamed columns, and row security that hides the rows.
	handle = alice.Value(beginTalk)
	alice.Exec("insert into room.t select conversation_group_id from sb.conversation_endpoints")
	a.Exec(`
alter table room.t rename conversation_group_id to g;
alter table room.t enable row level security; alter table room.t force row level security; create policy nothing on room.t using (false)`)
	alice.Exec("select sb.end_conversation($1::uuid)", handle)
	a.Exec("alter table room.t no force row level security")
	wantValue(t, "rows left", a.Value("select count(*) from room.t"), "0")
	a.ExecError("SB002", "select sb.drop_state_table('room.t')")
	a.Exec("create view room.v as select gen_random_uuid() as conversation_group_id")
	a.ExecError("SB002", "select sb.drop_state_table('room.v')")
	// A trigger that fails stops END, which then has changed nothing, until the table is gone.
	a.Exec("create function room.no() returns trigger language plpgsql as $$ begin raise sqlstate 'ZZ001'; end $$; create trigger no before delete on room.t for each statement execute function room.no()")
	handle = alice.Value(beginTalk)
	before := pgtest.Fingerprint(owner)
	alice.ExecError("ZZ001", "select sb.end_conversation($1::uuid)", handle)
	wantValue(t, "after a failed end", pgtest.Fingerprint(owner), before)
	a.Exec("drop table room.t")
	alice.Exec("select sb.end_conversation($1::uuid)", handle)
}

// Validators that misbehave. What says nothing about the body is raised, and changes nothing; all else is a no.
// Rules: R-022
func TestValidatorMisbehaves(t *testing.T) {
	t.Parallel()
	db, owner, alice := newTalk(t)
	group := db.CreateRole(t, "group")
	superuser(t, db, fmt.Sprintf("grant %q to %q", group, db.Name+"_alice"), fmt.Sprintf("grant usage on schema sb to %q", group))
	owner.Exec("create schema gone; grant usage on schema gone to public; create function gone.f(jsonb) returns boolean language sql return true; create table room.held (x integer); grant all on room.held to public")
	for name, test := range map[string]struct{ body, code string }{
		"yes":        {`return true;`, ""},
		"null":       {`return null;`, "no"},
		"raises":     {`raise exception 'no';`, "no"},
		"asserts":    {`assert false;`, "no"},
		"commits":    {`commit; return true;`, "no"},
		"rolls back": {`rollback; return true;`, "no"},
		"unique":     {`raise unique_violation;`, "no"},
		"recurses":   {`perform sb.send(current_setting('my.handle')::uuid, 'recurses', $1); return true;`, "S8429 or no"},
		"ends":       {`perform sb.end_conversation(current_setting('my.handle')::uuid); return true;`, "S8426"},
		"sleeps":     {`perform pg_sleep(3600); return true;`, "57014"},
		"catches":    {`perform pg_sleep(3600); return true; exception when others then return true;`, "57014"},
		"waits":      {`lock table room.held; return true;`, "55P03"},
		"deadlocks":  {`raise deadlock_detected;`, "40P01"},
		"serializes": {`raise serialization_failure;`, "40001"},
		"memory":     {`raise out_of_memory;`, "53200"},
		"no rights":  {`perform from sb_internal.queue; return true;`, "42501"},
		"becomes":    {`set role ` + group + `; return true;`, ""},
		"resets":     {`reset role; return true;`, ""},
		"authorizes": {`set session authorization default; return true;`, ""},
		"path":       {`perform set_config('search_path', 'room', false); return true;`, ""},
	} {
		owner.Exec(fmt.Sprintf("create function room.%s(jsonb) returns boolean language plpgsql as $$ begin %s end $$", pgx.Identifier{name}.Sanitize(), test.body))
		owner.Exec("select sb.create_message_type($1, 'VALID_JSON', $2::text::regprocedure)", name, fmt.Sprintf("room.%s(jsonb)", pgx.Identifier{name}.Sanitize()))
		owner.Exec("select sb.create_contract($1, array[$1]), sb.alter_service('Right', add_contracts => array[$1]), sb.grant_references($1, $2::name)", name, db.Name+"_alice")
		handle := alice.Value("select sb.begin_dialog('Left', 'Right', $1)", name)
		alice.Exec("select set_config('my.handle', $1, false)", handle)
		alice.Exec("set statement_timeout = '1 min'; set lock_timeout = '100 ms'")
		if test.code == "57014" {
			alice.Exec("set statement_timeout = '200 ms'")
		}
		holder := db.Session(t, "holder")
		holder.Begin()
		holder.Exec("lock table room.held")
		before := pgtest.Fingerprint(owner)
		_, err := alice.Conn.Exec(t.Context(), "select sb.send($1::uuid, $2, '{}'::jsonb)", handle, name)
		holder.Rollback()
		alice.Exec("reset all; reset role")
		want := test.code
		if want == "S8429 or no" {
			// At the bottom of the stack it is a no. So one above sends on a conversation that has failed, which is
			// undone and a no to the next one, and so on: how it ends is a matter of how deep the stack is.
			want = strings.Fields(want)[map[bool]int{true: 2, false: 0}[err == nil]]
			test.code = want
		}
		if want == "no" {
			want = ""
		}
		if got := pgtest.SQLState(err); got != want || want == "" && err != nil {
			t.Errorf("%s: got %q, want %q: %v", name, got, want, err)
		}
		if want != "" {
			wantValue(t, name+": after a failed send", pgtest.Fingerprint(owner), before)
		}
		state := map[string]string{"": "CO", "no": "ER"}[test.code]
		if state == "" {
			state = "SO"
		}
		wantValue(t, name, owner.Value("select state from sb.conversation_endpoints where conversation_handle = $1::uuid", handle), state)
		owner.Exec("select sb.end_conversation($1::uuid, cleanup => true)", handle)
	}
	// In a definer function there is no other role to become.
	owner.Exec(`create function room.say(h uuid, kind text) returns void language plpgsql security definer as $$ begin perform sb.send(h, kind, '{}'::jsonb); end $$; grant execute on function room.say to public`)
	handle := owner.Value("select sb.begin_dialog('Left', 'Right', 'resets')")
	alice.ExecError("42501", "select room.say($1::uuid, 'resets')", handle)
	// One that is gone, or whose schema is, says nothing about bodies.
	owner.Exec("select sb.alter_message_type('yes', 'VALID_JSON', 'gone.f(jsonb)')")
	handle = alice.Value("select sb.begin_dialog('Left', 'Right', 'yes')")
	owner.Exec("drop function gone.f")
	alice.ExecError("42883", "select sb.send($1::uuid, 'yes', '{}'::jsonb)", handle)
	owner.Exec("drop schema gone")
	alice.ExecError("3F000", "select sb.send($1::uuid, 'yes', '{}'::jsonb)", handle)
	wantValue(t, "state", owner.Value("select state from sb.conversation_endpoints where conversation_handle = $1::uuid", handle), "SO")
}

// What multiplies, nests or searches without end is an error with a code, in good time, and changes nothing.
func TestBombs(t *testing.T) {
	t.Parallel()
	_, owner, alice := newTalk(t)
	handle := alice.Value(beginTalk)
	alice.Exec("select sb.send($1::uuid, 'Note')", handle)
	var entities strings.Builder
	entities.WriteString(`<!ENTITY e0 "ha">`)
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&entities, `<!ENTITY e%d "%s">`, i, strings.Repeat(fmt.Sprintf("&e%d;", i-1), 10))
	}
	bomb := "<!DOCTYPE x [" + entities.String() + "]><Error><Code>1</Code><Description>&e29;</Description></Error>"
	quadratic := `<!DOCTYPE x [<!ENTITY a "` + strings.Repeat("a", 100000) + `">]><x>` + strings.Repeat("&a;", 100000) + "</x>"
	alice.Exec("set statement_timeout = '20 s'")
	before := pgtest.Fingerprint(owner)
	for _, body := range []string{bomb, quadratic} {
		if length := alice.Query("select sb.error_code($1::bytea), sb.error_description($1::bytea)", []byte(body)); length[0] != "NULL|NULL" {
			t.Errorf("an Error with a DOCTYPE is read: %.100q", length)
		}
		_, err := alice.Conn.Exec(t.Context(), "select sb.body_xml($1::bytea)", []byte(body))
		if code := pgtest.SQLState(err); code != "2200N" && (err != nil || alice.Value("select octet_length(sb.body_xml($1::bytea)::text) <= $2::integer", []byte(body), len(body)+100) != "t") {
			t.Errorf("body_xml: %q %v", code, err)
		}
	}
	for _, external := range []string{
		`<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>`, `<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x.dtd"><x>&a;</x>`,
		`<!DOCTYPE x [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]><x/>`, `<x xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="file:///etc/passwd" parse="text"/></x>`,
	} {
		rows, err := alice.Conn.Query(t.Context(), "select sb.body_xml($1::bytea)::text", []byte(external))
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil && pgtest.SQLState(err) != "2200N" || strings.Contains(strings.Join(texts, ""), "root:") {
			t.Errorf("%s: %v %q", external, err, texts)
		}
	}

	deep := strings.Repeat("[", 1000000) + strings.Repeat("]", 1000000)
	schema := strings.Repeat(`{"not":`, 10000) + "true" + strings.Repeat("}", 10000)
	alice.ExecError("54001", "select sb.body_json($1::bytea)", []byte(deep))
	alice.ExecError("54001", "select sb.send($1::uuid, 'Note', $2::text::jsonb)", handle, deep)
	owner.ExecError("54001", "select sb.create_message_type('Deep', 'VALID_JSON', schema => $1::text::jsonb)", deep)
	for _, schema := range []string{schema, `{"pattern": "((((a{1,255}){1,255}){1,255}){1,255})"}`, `{"pattern": "` + strings.Repeat("(", 100000) + `"}`} {
		owner.ExecError("22023", "select sb.create_message_type('Deep', 'VALID_JSON', schema => $1::text::jsonb)", schema)
	}
	wantValue(t, "after all that", pgtest.Fingerprint(owner), before)

	// A pattern may still take for ever on some body, since it may refer back; then the sender's time is up.
	owner.Exec(`
select sb.create_message_type('Slow', 'VALID_JSON', schema => '{"pattern": "^(a*)(a*)(a*)(a*)\\1\\2\\3\\4$"}'), sb.create_message_type('Text', 'VALID_JSON', schema => '{"pattern": "^(a|aa)+$"}');
select sb.create_contract('Slowly', '{Slow,Text}'), sb.alter_service('Right', add_contracts => '{Slowly}'), sb.grant_references('Slowly', 'public')`)
	handle = alice.Value("select sb.begin_dialog('Left', 'Right', 'Slowly')")
	before = pgtest.Fingerprint(owner)
	alice.Exec("set statement_timeout = '500 ms'")
	started := time.Now()
	alice.ExecError("57014", "select sb.send($1::uuid, 'Slow', to_jsonb(repeat('a', 801)))", handle)
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("stopped after %v", took)
	}
	wantValue(t, "after a search without end", pgtest.Fingerprint(owner), before)
	// Without references back there is nothing that multiplies.
	alice.Exec("set statement_timeout = '20 s'")
	alice.Exec("select sb.send($1::uuid, 'Text', to_jsonb(repeat('a', 100000) || '!'))", handle)
	wantRows(t, "the verdict", alice.Query("select sb.error_code(message_body) from sb.receive('LeftQueue')"), "-9615")

	// A million of anything can be stopped.
	handle = alice.Value(beginTalk)
	before = pgtest.Fingerprint(owner)
	for _, call := range []string{
		"sb.send_batch('" + handle + "', 'Note', array_fill('x'::bytea, array[1000000]))",
		"sb.multicast(array(select gen_random_uuid() from generate_series(1, 1000000)), 'Note', 'x')",
		"sb.create_contract('Million', array(select 'x' || i from generate_series(1, 1000000) as i))",
		"sb.create_contract('Million', array_fill('DEFAULT'::text, array[1000000]))",
		"sb.alter_service('Left', add_contracts => array_fill('DEFAULT'::text, array[1000000]))",
		"sb.activation_scan(array(select i from generate_series(100000, 1100000) as i))",
	} {
		owner.Exec("set statement_timeout = '400 ms'")
		started := time.Now()
		code, err := try(t, owner, "select "+call)
		if took := time.Since(started); took > 20*time.Second || err != nil && code != "57014" && code != "42704" && code != "S8403" && code != "S8426" && code != "S8404" {
			t.Errorf("%s: %v, after %v", call, err, took)
		}
		owner.Exec("reset statement_timeout")
		wantValue(t, call, pgtest.Fingerprint(owner), before)
	}
}

// Half a megabyte in every text of every verb: a short error with a code, whoever asks.
func TestLongArguments(t *testing.T) {
	t.Parallel()
	_, owner, _ := newTalk(t)
	handle := owner.Value(beginTalk)
	const long = "repeat('🐘', 100000)"
	before := pgtest.Fingerprint(owner)
	for _, call := range []string{
		"receive(@)", "get_conversation_group(@)", "start_waiting(@)", "stop_waiting(@)", "send('H', @, 'x'::text)", "end_conversation('H', 1, @)",
		"begin_dialog(@, 'Right')", "begin_dialog('Left', @)", "begin_dialog('Left', 'Right', @)", "begin_dialog('Left', 'Right', 'Talk', @)",
		"create_message_type(@)", "create_message_type('x', @)", "alter_message_type(@, 'NONE')", "drop_message_type(@)",
		"create_contract(@, '{Note}')", "create_contract('x', array[@])", "drop_contract(@)", "create_queue(@)", "create_queue('x', activation_procedure => @)",
		"create_queue('x', activation_procedure => 'public.' || @)", "create_queue('x', activation_procedure => 'room.x', execute_as => @::name)",
		"alter_queue(@, enabled => true)", "drop_queue(@)", "create_service(@, 'LeftQueue')", "create_service('x', @)", "create_service('x', 'LeftQueue', array[@])",
		"alter_service(@, 'LeftQueue')", "alter_service('Left', @)", "alter_service('Left', add_contracts => array[@])", "alter_service('Left', drop_contracts => array[@])", "drop_service(@)",
		"create_route(@, 'LOCAL')", "create_route('x', @)", "create_route('x', 'remote://' || @)", "create_route('x', 'LOCAL', @)", "create_route('x', 'LOCAL', 'x', @)",
		"create_route('x', 'remote://x', 'x', 'x', mirror_address => @)", "alter_route(@, 'LOCAL')", "drop_route(@)",
		"create_broker_priority(@)", "create_broker_priority('x', @)", "create_broker_priority('x', null, @)", "create_broker_priority('x', null, null, @)",
		"alter_broker_priority(@)", "drop_broker_priority(@)", "create_event_notification(@, 'LeftQueue', 'BROKER_QUEUE_DISABLED', 'Left')",
		"create_event_notification('x', @, 'BROKER_QUEUE_DISABLED', 'Left')", "create_event_notification('x', 'LeftQueue', @, 'Left')",
		"create_event_notification('x', 'LeftQueue', 'BROKER_QUEUE_DISABLED', @)", "create_event_notification('x', 'LeftQueue', 'BROKER_QUEUE_DISABLED', 'Left', @)",
		"drop_event_notification(@, 'LeftQueue')", "drop_event_notification('x', @)", "alter_authorization(@, 'x', current_user)", "alter_authorization('queue', @, current_user)",
		"grant_send(@, current_user)", "grant_receive(@, current_user)", "grant_references(@, current_user)", "grant_receive('LeftQueue', @::name)", "grant_admin(@::name)",
		"revoke_send(@, current_user)", "revoke_receive(@, current_user)", "revoke_references(@, current_user)", "revoke_admin(@::name)", "set_option(@, 'on')",
		"set_option('system_names', @)", "set_option('poison_message_threshold', @)", "deliver(@)", "drop_state_table(@)",
	} {
		_, err := try(t, owner, "select sb."+strings.NewReplacer("@", long, "'H'", "'"+handle+"'").Replace(call))
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code == "XX000" || len(e.Message) > 4000 || len(e.Detail) > 4000 {
			t.Errorf("%s: %.1000v", call, err)
		}
	}
	wantValue(t, "after all that", pgtest.Fingerprint(owner), before)
}

// The largest body there may be; one byte more is refused (internal/sqltest).
func TestSoakLargestBody(t *testing.T) {
	if os.Getenv("SBROKER_SOAK") == "" {
		t.Skip("make soak")
	}
	_, owner, alice := newTalk(t)
	handle := alice.Value(beginTalk)
	alice.Exec("select sb.send($1::uuid, 'Note', convert_to(repeat('x', 268435456), 'UTF8'))", handle)
	wantRows(t, "received", owner.Query("select octet_length(message_body) from sb.receive('RightQueue')"), "268435456")
	alice.Exec("select sb.send_batch($1::uuid, 'Note', array(select 'x'::bytea from generate_series(1, 1000000)))", handle)
	wantRows(t, "received", owner.Query("select count(*), min(message_sequence_number), max(message_sequence_number) from sb.receive('RightQueue')"), "1000000|1|1000000")
}
