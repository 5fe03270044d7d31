package sectest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// dropRole drops a role that [pgtest.DB.CreateRole] has not made, at the end of the test.
func dropRole(t *testing.T, db *pgtest.DB, role string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		conn, err := pgx.Connect(ctx, db.URLAs(""))
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(ctx)
		name := pgx.Identifier{role}.Sanitize()
		if _, err := conn.Exec(ctx, "drop owned by "+name+"; drop role "+name); err != nil {
			t.Error(err)
		}
	})
}

// Rights are kept by name, whatever the name.
func TestRoleNames(t *testing.T) {
	t.Parallel()
	db, owner, _ := newTalk(t)
	super := db.SessionAs(t, "superuser", "")
	prefix := db.Name + "_"
	for i, suffix := range []string{`"`, `'; drop table x; --`, `$$ %I %s %L`, "new\nline", `a,b{c}\d`, "Ünïcödé", "PUBLIC", "null", strings.Repeat("x", 63-len(prefix)), " "} {
		role := prefix + suffix
		name := pgx.Identifier{role}.Sanitize()
		super.Exec("create role " + name)
		dropRole(t, db, role)
		super.Exec(fmt.Sprintf("grant %s to %q", name, db.Owner))
		queue := fmt.Sprintf("Q%d", i)
		owner.Exec("create or replace procedure room.step() language sql as ''")
		owner.Exec("select sb.create_queue($1, activation_procedure => 'room.step', execute_as => $2::name), sb.create_service($1, $1, '{Talk}')", queue, role)
		owner.Exec("select sb.grant_receive('LeftQueue', $1::name), sb.grant_references('Talk', $1::name), sb.grant_send('Right', $1::name)", role)
		owner.Exec("select sb.alter_authorization('queue', $1, $2::name), sb.alter_authorization('service', $1, $2::name)", queue, role)
		super.Exec("set role " + name)
		wantRows(t, role, super.Query("select q.owner, q.execute_as, q.principal_id::oid::regrole = quote_ident($2)::regrole from sb.service_queues as q where q.name = $1", queue, role), role+"|"+role+"|t")
		handle := super.Value(beginTalk)
		super.Exec("select sb.send($1::uuid, 'Note'), sb.end_conversation($1::uuid)", handle)
		super.Exec("select sb.drop_service($1), sb.drop_queue($1)", queue)
		super.ExecError("42501", "select sb.create_queue('x')")
		super.Exec("reset role")
		owner.Exec("select sb.grant_admin($1::name)", role)
		super.Exec("set role " + name)
		super.Exec("select sb.create_state_table('room.of_admin', ''), sb.drop_state_table('room.of_admin'), sb.maintain()")
		super.Exec("reset role")
		owner.Exec("select sb.revoke_admin($1::name), sb.revoke_receive('LeftQueue', $1::name), sb.revoke_references('Talk', $1::name), sb.revoke_send('Right', $1::name)", role)
		wantRows(t, role+": left", owner.Query("select p.oid::regprocedure from pg_proc as p, aclexplode(p.proacl) as a where a.grantee = quote_ident($1)::regrole", role))
	}
	owner.ExecError("22021", "select sb.grant_send('Right', $1::text::name)", "nul\x00")
	owner.ExecError("42704", "select sb.grant_send('Right', 'none')")
}

// Whoever owns something, or the broker, cannot lock himself out; nor does a role that is renamed, or dropped and made
// anew, take rights along that are not its own.
func TestRolesThatChange(t *testing.T) {
	t.Parallel()
	db, owner, alice := newTalk(t)
	role := db.Name + "_alice"
	owner.Exec("select sb.revoke_admin($1::name), sb.revoke_receive('LeftQueue', $1::name)", db.Owner)
	owner.Exec("select sb.grant_receive('LeftQueue', $1::name), sb.revoke_receive('LeftQueue', $1::name)", db.Owner)
	owner.Exec("select sb.grant_admin($1::name), sb.revoke_admin($1::name)", db.Owner)
	owner.Exec("select * from sb.receive('LeftQueue')")
	ann := db.CreateRole(t, "ann")
	owner.Exec("select sb.grant_admin($1::name)", ann)
	a := db.SessionAs(t, "ann", ann)
	a.Exec("select sb.create_queue('Hers'), sb.revoke_receive('Hers', current_user)")
	a.Exec("select sb.revoke_admin(current_user)")
	a.ExecError("42501", "select sb.grant_admin(current_user)")
	a.Exec("select * from sb.receive('Hers')") // hers still
	a.Exec("select sb.drop_queue('Hers')")
	a.ExecError("42501", "select * from sb.receive('LeftQueue')")

	// Renamed: PostgreSQL's privileges go along, rights of the broker do not, and the new bearer of the name has none
	// of the privileges. Housekeeping forgets a name that nobody bears.
	handle := alice.Value(beginTalk)
	renamed := db.Name + "_alicia"
	superuser(t, db, fmt.Sprintf("alter role %q rename to %q", role, renamed))
	alice.ExecError("42501", "select sb.send($1::uuid, 'Note')", handle)
	alice.ExecError("42501", beginTalk)
	owner.Exec("select sb.maintain()")
	superuser(t, db, fmt.Sprintf("create role %q", role))
	dropRole(t, db, role)
	dropRole(t, db, renamed)
	super := db.SessionAs(t, "superuser", "")
	super.Exec(fmt.Sprintf("set role %q", role))
	super.ExecError("42501", "select sb.send($1::uuid, 'Note')", handle)
	owner.Exec("select sb.grant_send('Right', $1::name)", role) // brings the verbs
	super.ExecError("42501", "select sb.send($1::uuid, 'Note')", handle)
	super.ExecError("42501", beginTalk)
	// The right is granted again, under the new name.
	owner.Exec("select sb.grant_receive('LeftQueue', $1::name)", renamed)
	alice.Exec("select sb.send($1::uuid, 'Note')", handle)
}

// From PostgreSQL 16 on a member need not be allowed to SET ROLE; then he chooses nothing that runs as, or belongs to, that
// role.
func TestMembersThatMayNotSetRole(t *testing.T) {
	t.Parallel()
	db, owner, _ := newTalk(t)
	role := db.CreateRole(t, "role")
	owner.Exec("create procedure room.step() language sql as ''")
	calls := []string{
		"select sb.alter_queue('LeftQueue', activation_procedure => 'room.step', execute_as => '" + role + "')",
		"select sb.alter_authorization('queue', 'LeftQueue', '" + role + "')",
	}
	refused := func() {
		t.Helper()
		for _, call := range calls {
			owner.ExecError("42501", call)
		}
	}
	refused()
	if owner.Value("select current_setting('server_version_num')::integer >= 160000") == "t" {
		superuser(t, db, fmt.Sprintf("grant %q to %q with inherit true, set false", role, db.Owner))
		refused()
	}
	superuser(t, db, fmt.Sprintf("revoke %q from %q", role, db.Owner), fmt.Sprintf("grant %q to %q", role, db.Owner))
	for _, call := range calls {
		owner.Exec(call)
	}
}

// Advisory locks belong to everybody who can connect. The worst that a stranger does with those of the broker is to keep
// others waiting: DDL verbs, begin_dialog, start_waiting, readers of activators. Messages go on, and every wait ends with
// the stranger's session or by lock_timeout.
func TestAdvisoryLocks(t *testing.T) {
	t.Parallel()
	db, owner, alice := newTalk(t)
	handle := alice.Value(beginTalk)
	alice.Exec("select sb.send($1::uuid, 'Note')", handle)
	queue := owner.Value("select queue_id from sb.service_queues where name = 'RightQueue'")
	stranger := db.SessionAs(t, "stranger", db.CreateRole(t, "stranger"))
	stranger.Exec(`
select pg_advisory_lock(8420, -1), pg_advisory_lock(8420, $1::integer), pg_advisory_lock(8421, 0), pg_advisory_lock(8422, 0),
       pg_advisory_lock(8423, hashtext('Left')), pg_advisory_lock(8424, hashtext('Talk')),
       pg_advisory_lock((21314::bigint << 48) | ($1::bigint << 15))`, queue)
	for _, s := range []*pgtest.Session{owner, alice} {
		s.Exec("set lock_timeout = '200 ms'; set statement_timeout = '20 s'")
	}
	alice.Exec("select sb.send($1::uuid, 'Note'), sb.send_batch($1::uuid, 'Note', '{a,b}'), sb.multicast(array[$1::uuid], 'Note', 'x')", handle)
	alice.Exec("select sb.begin_conversation_timer($1::uuid, '1 h'), sb.cancel_conversation_timer($1::uuid)", handle)
	wantValue(t, "received", owner.Value("select count(*) from sb.receive('RightQueue')"), "5")
	owner.Exec("select sb.deliver(), sb.maintain()")
	before := pgtest.Fingerprint(owner)
	alice.ExecError("55P03", beginTalk)
	owner.ExecError("55P03", "select sb.create_queue('x')")
	owner.ExecError("55P03", "select sb.grant_send('Right', current_user)")
	owner.ExecError("55P03", "select sb.create_state_table('room.t', '')")
	wantValue(t, "a reader slot", owner.Value("select sb.take_reader($1::integer)", queue), "f")
	owner.Exec("set statement_timeout = '200 ms'")
	owner.ExecError("57014", "select sb.start_waiting('RightQueue')")
	owner.Exec("set statement_timeout = '20 s'")
	wantValue(t, "after all that", pgtest.Fingerprint(owner), before)
	alice.Exec("select sb.end_conversation($1::uuid)", handle)

	waiting := alice.GoExec("reset lock_timeout; " + beginTalk)
	pgtest.WaitBlocked(t, alice, stranger)
	stranger.Exec("select pg_advisory_unlock_all()")
	if err := pgtest.Wait(t, waiting); err != nil {
		t.Error(err)
	}
	owner.Exec("select sb.create_queue('x'), sb.start_waiting('RightQueue'), sb.stop_waiting('RightQueue')")
}

// A verb that is stopped while it waits for any of the tables it works on has changed nothing, holds nothing, and works
// when it is called again.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	db, owner, _ := newTalk(t)
	blocker, s := db.Session(t, "blocker"), db.Session(t, "caller")
	handle := owner.Value(beginTalk)
	owner.Exec("select sb.send($1::uuid, 'Note')", handle)
	owner.Exec("select sb.send(conversation_handle, 'Note') from sb.receive('RightQueue')")
	other := owner.Value(beginTalk)
	group := owner.Value("select conversation_group_id from sb.conversation_endpoints where conversation_handle = $1::uuid", other)
	owner.Exec("select sb.alter_queue(q.name, poison_message_handling => false) from unnest('{LeftQueue,RightQueue}'::text[]) as q (name)")
	before := pgtest.Fingerprint(owner)
	verbs := []string{
		"begin_dialog('Left', 'Right', 'Talk')", "send('H', 'Note', 'x'::text)", "send('O', 'Note', 'first'::text)", "send_batch('H', 'Note', '{a,b}')", "multicast('{H,O}', 'Note', 'x')",
		"receive('LeftQueue')", "receive('LeftQueue', for_conversation => 'H')", "get_conversation_group('LeftQueue')", "move_conversation('H', '" + group + "')",
		"end_conversation('H')", "end_conversation('H', 1, 'x')", "end_conversation('H', cleanup => true)", "begin_conversation_timer('H', '1 h')",
		"set_state('" + group + "', '1')", "start_waiting('LeftQueue')", "create_queue('x')", "alter_queue('RightQueue', enabled => false)", "create_service('x', 'LeftQueue')",
		"drop_service('Right')", "create_contract('x', '{Note}')", "grant_receive('LeftQueue', 'public')", "grant_admin('" + db.Name + "_alice')", "new_broker()", "maintain()",
		"create_state_table('room.t', '')",
	}
	stopped := 0
	for i, verb := range verbs {
		call := "select sb." + strings.NewReplacer("H", handle, "O", other).Replace(verb)
		// What the verb works on, by the locks that it has in the end.
		s.Begin()
		s.Exec(call)
		tables := owner.Query(`
select distinct c.oid::regclass
  from pg_locks as l
  join pg_class as c on c.oid = l.relation
 where l.pid = $1::integer
   and c.relkind = 'r'
   and c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
   and l.database = (select d.oid from pg_database as d where d.datname = current_database())
 order by 1`, s.PID())
		s.Rollback()
		s.Exec("select pg_advisory_unlock_all()")
		if len(tables) == 0 {
			t.Errorf("%s locks no table", verb)
		}
		for j, table := range tables {
			// By the one timeout or by the other.
			setting, code := "lock_timeout", "55P03"
			if (i+j)%2 == 0 {
				setting, code = "statement_timeout", "57014"
			}
			blocker.Begin()
			blocker.Exec("lock table " + table + " in access exclusive mode")
			s.Exec("set " + setting + " = '30 ms'")
			_, err := s.Conn.Exec(t.Context(), call)
			s.Exec("set " + setting + " = 0")
			blocker.Rollback()
			if got := pgtest.SQLState(err); got != code {
				t.Errorf("%s, waiting for %s: got %q, want %q: %v", verb, table, got, code, err)
			}
			stopped++
		}
		wantValue(t, verb+": stopped", pgtest.Fingerprint(owner), before)
		if code, err := try(t, s, call); err != nil {
			t.Errorf("%s, called again: %s %v", verb, code, err)
		}
		s.Exec("select pg_advisory_unlock_all()")
	}
	if stopped < 100 {
		t.Errorf("only %d times stopped", stopped)
	}

	// Sessions that the server ends because they do nothing.
	for _, setting := range []string{"idle_in_transaction_session_timeout", "idle_session_timeout"} {
		idle := db.Session(t, setting)
		idle.Exec("select sb.start_waiting('LeftQueue')")
		idle.Exec("set " + setting + " = '100 ms'")
		if setting == "idle_in_transaction_session_timeout" {
			idle.Begin()
			for _, verb := range []string{"send('H', 'Note', 'x'::text)", "receive('LeftQueue')", "end_conversation('O')"} {
				idle.Exec("select sb." + strings.NewReplacer("H", handle, "O", other).Replace(verb))
			}
		}
		pgtest.Eventually(t, 20*time.Second, func() bool {
			return owner.Value("select count(*) from pg_stat_activity where pid = $1::integer", idle.PID()) == "0"
		})
		wantValue(t, setting, pgtest.Fingerprint(owner), before)
	}
}

// Settings that a caller may change, and that change how SQL is read or written, change nothing.
func TestHostileSettings(t *testing.T) {
	t.Parallel()
	_, owner, alice := newTalk(t)
	owner.Exec("select sb.create_message_type('Json', 'VALID_JSON', schema => '{\"type\": \"number\", \"minimum\": 1.5}'), sb.create_message_type('Xml', 'WELL_FORMED_XML')")
	owner.Exec("select sb.create_contract('Typed', '{Json,Xml,Note}'), sb.alter_service('Right', add_contracts => '{Typed}'), sb.grant_references('Typed', 'public')")
	for _, setting := range []string{
		"datestyle = 'German, DMY'", "intervalstyle = sql_standard", "timezone = 'Pacific/Chatham'", "bytea_output = escape", "standard_conforming_strings = off",
		"backslash_quote = on", "escape_string_warning = on", "array_nulls = off", "transform_null_equals = on", "quote_all_identifiers = on", "xmloption = document",
		"xmlbinary = hex", "extra_float_digits = -15", "check_function_bodies = off", "row_security = off", "lc_numeric = 'C'", "default_transaction_deferrable = on",
		"plan_cache_mode = force_custom_plan", "constraint_exclusion = on", "client_min_messages = error",
	} {
		for _, s := range []*pgtest.Session{owner, alice} {
			s.Exec("set " + setting)
		}
	}
	handle := alice.Value("select sb.begin_dialog('Left', 'Right', 'Typed', lifetime => '1 day')")
	alice.Exec("select sb.send($1::uuid, 'Json', '2'::jsonb), sb.send($1::uuid, 'Xml', xmlparse(content '<a/><b/>')), sb.send($1::uuid, 'Note', E'\\\\x00'::text)", handle)
	alice.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", handle)
	wantRows(t, "lifetime and timer", alice.Query("select e.lifetime between now() + '23 h' and now() + '24 h', e.dialog_timer between now() + '59 min' and now() + '1 h' from sb.conversation_endpoints as e"), "t|t")
	wantRows(t, "received", owner.Query("select encode(message_body, 'hex') from sb.receive('RightQueue')"), "32", "3c612f3e3c622f3e", "5c783030")
	owner.Exec("select sb.create_queue('Other'), sb.create_service('Other', 'Other', '{Typed}'), sb.grant_receive('Other', 'public'), sb.revoke_receive('Other', 'public')")
	owner.Exec("select sb.alter_service('Other', 'LeftQueue'), sb.create_state_table('room.t', 'x integer'), sb.drop_state_table('room.t'), sb.drop_queue('Other'), sb.maintain(), sb.after_restore()")
	owner.Exec("select sb.create_event_notification('e', 'LeftQueue', 'BROKER_QUEUE_DISABLED', 'Left'), sb.alter_queue('LeftQueue', enabled => false), sb.alter_queue('LeftQueue', enabled => true)")
	for _, view := range owner.Query("select c.relname from pg_class as c where c.relnamespace = 'sb'::regnamespace and c.relkind = 'v'") {
		owner.Exec("select * from sb." + view)
	}
	alice.Exec("select sb.send($1::uuid, 'Json', '1.4'::jsonb)", handle)
	wantRows(t, "refused", alice.Query("select sb.error_code(message_body) from sb.receive('LeftQueue') where message_type_name like '%/Error'"), "-9615")
}

// Event triggers, which only superusers make, run for what verbs create and grant. One that fails stops those verbs, and
// no other.
func TestEventTriggers(t *testing.T) {
	t.Parallel()
	db, owner, alice := newTalk(t)
	superuser(t, db, `
create function room.refuse() returns event_trigger language plpgsql as $$ begin raise sqlstate 'ZZ001'; end $$;
create event trigger refuse on ddl_command_end execute function room.refuse()`)
	before := pgtest.Fingerprint(owner)
	for _, call := range []string{
		"create_queue('x')", "grant_receive('LeftQueue', 'public')", "create_state_table('room.t', '')", "grant_admin('" + db.Name + "_alice')",
	} {
		owner.ExecError("ZZ001", "select sb."+call)
	}
	wantValue(t, "after all that", pgtest.Fingerprint(owner), before)
	handle := alice.Value(beginTalk)
	alice.Exec("select sb.send($1::uuid, 'Note')", handle)
	owner.Exec("select sb.end_conversation(conversation_handle) from sb.receive('RightQueue')")
	alice.Exec("select sb.end_conversation($1::uuid)", handle)
	owner.Exec("select sb.maintain()")
}

// The predefined roles that read or write all data have USAGE on every schema. Alone they read messages, or change
// them behind the back of the broker; together with any right they may also name inner functions, and so be anybody.
// docs/security.md says so; this is what it says.
func TestAllDataRoles(t *testing.T) {
	t.Parallel()
	db, owner, alice := newTalk(t)
	alice.Exec("select sb.send($1::uuid, 'Note', 'secret'::text)", alice.Value(beginTalk))
	backup := db.CreateRole(t, "backup")
	superuser(t, db, fmt.Sprintf("grant pg_read_all_data to %q", backup))
	b := db.SessionAs(t, "backup", backup)
	wantRows(t, "reads", b.Query("select sb.body_text from sb_internal.message as m, convert_from(m.message_body, 'UTF8') as sb (body_text)"), "secret")
	forged := "select * from sb_internal._receive($1::name, 'RightQueue', null, null, null, null)"
	b.ExecError("42501", "select * from sb.receive('RightQueue')")
	b.ExecError("42501", forged, db.Owner)
	b.ExecError("42501", "update sb_internal.broker set admins = '{x}'")
	owner.Exec("select sb.grant_send('Right', 'public')")
	b.ExecError("42501", "select * from sb.receive('RightQueue')")
	b.Begin()
	b.Exec(forged, db.Owner)
	b.Rollback()
	owner.Exec("select sb.revoke_send('Right', 'public')")
	b.ExecError("42501", forged, db.Owner)
	wantValue(t, "there still", owner.Value("select count(*) from sb.queue_messages"), "1")
}

// What an activation procedure may is what its execute_as role may, as long as it stays in that role.
// Rules: R-382
func TestProcedureRights(t *testing.T) {
	t.Parallel()
	shops := newTwoShops(t)
	login := shops.CreateRole(t, "activator")
	superuser(t, shops.DB, fmt.Sprintf("grant %q to %q, %q", shops.reader, login, shops.Owner))
	o := shops.owner
	o.Exec("select sb.grant_admin($1::name)", login)
	o.Exec("create table room.tried (call text, code text, who name); grant insert on room.tried to public; create table room.call (call text, needs text); grant select on room.call to public")
	for _, row := range matrix {
		o.Exec("insert into room.call values ($1, $2)", shops.fill.Replace(row.call), row.needs)
	}
	o.Exec(`
create or replace procedure room.attempt() language plpgsql as $$
declare
  c record;
begin
  for c in select * from room.call loop
    begin
      execute c.call;
      raise sqlstate 'ZZ000';
    exception when others then
      insert into room.tried values (c.call, sqlstate, current_user);
    end;
  end loop;
  perform sb.end_conversation(m.conversation_handle) from sb.receive('Mine') as m;
end $$;
select sb.alter_queue('Other', drop_activation => true)`)
	o.Exec("select sb.alter_queue('Mine', activation_procedure => 'room.attempt', execute_as => $1::name)", shops.reader)
	a, err := activator.New(activator.Config{DatabaseURL: shops.URLAs(login), Name: "sectest", PollInterval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	pgtest.Eventually(t, time.Minute, func() bool {
		return o.Value("select count(distinct t.call) from room.tried as t") == o.Value("select count(distinct c.call) from room.call as c")
	})
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	may := fmt.Sprintf("'%s', '%s', '%s'", anyRight, receive, begin)
	wantRows(t, "ran as", o.Query("select distinct t.who from room.tried as t"), shops.reader)
	wantRows(t, "refused, or not, against the rights of the role", o.Query(`
select distinct c.call, t.code
  from room.tried as t
  join room.call as c on c.call = t.call
 where (t.code = '42501') = (c.needs in (`+may+`))`))
}
