package sqltest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// grant makes member a member of role, which the owner of sb may not.
func grant(t *testing.T, db *pgtest.DB, role, member string) {
	t.Helper()
	if _, err := db.Superuser(t).Exec(t.Context(), fmt.Sprintf("grant %q to %q", role, member)); err != nil {
		t.Fatal(err)
	}
}

// TestCatalogChecks runs the assertions of sql/checks, which must find nothing, whatever has been granted.
func TestCatalogChecks(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	files, err := filepath.Glob("../../sql/checks/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no checks: %v", err)
	}
	check := func(when string) {
		for _, file := range files {
			sql, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range owner.Query(string(sql)) {
				t.Errorf("%s, %s: %s", when, filepath.Base(file), row)
			}
		}
	}
	check("installed")
	owner.Exec("select sb.grant_admin($1::name), sb.grant_receive('OrderQueue', 'public')", db.CreateRole(t, "admin"))
	check("granted")
	owner.Exec("select sb.revoke_receive('OrderQueue', 'public')")
	check("revoked")
}

func TestStranger(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	stranger := db.SessionAs(t, "stranger", db.CreateRole(t, "stranger"))
	for _, name := range owner.Query("select p.oid::regproc from pg_proc as p where p.pronamespace = 'sb'::regnamespace group by 1 having count(*) = 1") {
		stranger.ExecError("42501", "select "+name+"()")
	}
	for _, name := range owner.Query("select c.oid::regclass from pg_class as c where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace) and c.relkind in ('v', 'r', 'S')") {
		stranger.ExecError("42501", "select * from "+name)
	}
}

// privileges lists what a role holds: usage, number of functions, number of views.
func privileges(s *pgtest.Session, role string) string {
	return s.Value(`
select (select count(*) from pg_namespace as n, aclexplode(n.nspacl) as a
         where n.nspname like 'sb%' and a.grantee = $1::regrole) || ' '
    || (select count(*) from pg_proc as p, aclexplode(p.proacl) as a
         where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace) and a.grantee = $1::regrole) || ' '
    || (select count(*) from pg_class as c, aclexplode(c.relacl) as a
         where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace) and a.grantee = $1::regrole)`, role)
}

// Rules
func TestGrantAndRevoke(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	alice := db.CreateRole(t, "alice")
	a := db.SessionAs(t, "alice", alice)

	owner.Exec("select sb.grant_receive('OrderQueue', $1::name), sb.grant_references('Buy', $1::name)", alice)
	handle := a.Value("select sb.begin_dialog('Orders', 'Warehouse', 'Buy')")
	a.Exec("select sb.send($1::uuid, 'Request', 'x'::text)", handle)
	owner.Exec("select sb.send(m.conversation_handle, 'Reply', '<ok/>'::xml) from sb.receive('WarehouseQueue') as m")
	wantRows(t, "reply", received(a, "OrderQueue"), "Reply|<ok/>")
	a.ExecError("42501", "select * from sb.receive('WarehouseQueue')")
	a.ExecError("42501", "select sb.begin_dialog('Warehouse', 'Orders', 'Buy')")
	for _, ddl := range []string{
		"create_queue('q')", "alter_queue('OrderQueue', enabled => false)", "drop_service('Orders')", "grant_admin(current_user)",
		"grant_receive('WarehouseQueue', current_user)", "set_option('validate_on_send', 'on')", "new_broker()",
		"create_message_type('m')", "alter_authorization('queue', 'OrderQueue', current_user)",
	} {
		a.ExecError("42501", "select sb."+ddl)
	}

	// Every kind of right brings the same privileges, and the last one takes them along.
	full := privileges(owner, alice)
	owner.Exec("select sb.grant_send('Warehouse', $1::name), sb.grant_send('Warehouse', $1::name)", alice)
	owner.Exec("select sb.revoke_receive('OrderQueue', $1::name)", alice)
	a.ExecError("42501", "select * from sb.receive('OrderQueue')")
	a.ExecError("42501", "select sb.send($1::uuid, 'Request', 'x'::text)", handle)
	owner.Exec("select sb.revoke_references('Buy', $1::name)", alice)
	wantRows(t, "privileges with one right left", []string{privileges(owner, alice)}, full)
	owner.Exec("select sb.revoke_send('Warehouse', $1::name)", alice)
	wantRows(t, "privileges without any", []string{privileges(owner, alice)}, "0 0 0")
	a.ExecError("42501", "select sb.body_text('x')")
	// Revoking what is not there is no error, naming nobody is.
	owner.Exec("select sb.revoke_send('Warehouse', $1::name)", alice)
	owner.ExecError("42704", "select sb.revoke_send('Warehouse', 'nobody at all')")

	// Dropping the last object a role has a right on takes them too.
	owner.Exec("select sb.create_queue('q'), sb.grant_receive('q', $1::name)", alice)
	wantRows(t, "privileges", []string{privileges(owner, alice)}, full)
	owner.Exec("select sb.drop_queue('q')")
	wantRows(t, "privileges", []string{privileges(owner, alice)}, "0 0 0")
}

func TestMembersInherit(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	group, alice := db.CreateRole(t, "clerks"), db.CreateRole(t, "alice")
	grant(t, db, group, alice)
	owner.Exec("select sb.grant_receive('OrderQueue', $1::name), sb.grant_references('Buy', $1::name)", group)
	a := db.SessionAs(t, "alice", alice)
	beginAndSend(a, "x")
	wantRows(t, "endpoints", a.Query("select e.state from sb.conversation_endpoints as e"), "CO")

	// A member that does not inherit has the right only as the group.
	if _, err := db.Superuser(t).Exec(t.Context(), fmt.Sprintf("revoke %q from %[2]q; alter role %[2]q noinherit; grant %[1]q to %[2]q", group, alice)); err != nil {
		t.Fatal(err)
	}
	a.ExecError("42501", "select * from sb.receive('OrderQueue')")
	a.Exec(fmt.Sprintf("set role %q", group))
	a.Exec("select * from sb.receive('OrderQueue')")
}

func TestPublic(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	anybody := db.SessionAs(t, "anybody", db.CreateRole(t, "anybody"))
	owner.Exec("select sb.grant_receive('OrderQueue', 'public'), sb.grant_references('Buy', 'public')")
	beginAndSend(anybody, "x")
	owner.Exec("select sb.revoke_receive('OrderQueue', 'public')")
	anybody.ExecError("42501", "select * from sb.receive('OrderQueue')")
	owner.Exec("select sb.revoke_references('Buy', 'public')")
	anybody.ExecError("42501", "select sb.body_text('x')")
}

// TestSendIsTheServiceOwners: whether a service may send to another is a matter of its owner, not of the caller.
// Rules
func TestSendIsTheServiceOwners(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	alice := db.CreateRole(t, "alice")
	grant(t, db, alice, db.Owner)
	owner.Exec("select sb.alter_authorization('service', 'Orders', $1::name)", alice)
	beginAndSend(owner, "x")
	wantRows(t, "refused", received(owner, "OrderQueue"), "Error|-8494")
	owner.Exec("select sb.grant_send('Warehouse', $1::name)", alice)
	beginAndSend(owner, "y")
	wantRows(t, "delivered", received(owner, "WarehouseQueue"), "Request|y")
}

// Rules
func TestAdmins(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	admins, ann := db.CreateRole(t, "admins"), db.CreateRole(t, "ann")
	grant(t, db, admins, ann)
	owner.Exec("select sb.grant_admin($1::name)", admins)
	a := db.SessionAs(t, "ann", ann)
	a.Exec("select sb.create_queue('AnnQueue'), sb.create_message_type('AnnType'), sb.set_option('validate_on_send', 'on')")
	wantRows(t, "owner", a.Query("select q.owner from sb.service_queues as q where q.name = 'AnnQueue'"), ann)
	handle := beginAndSend(owner, "x")
	wantRows(t, "sees everything", a.Query("select count(*) from sb.queue_messages"), "1")
	a.Exec("select sb.end_conversation($1::uuid)", handle)
	a.Exec("select sb.alter_queue('WarehouseQueue', retention => true)")

	// No admin any more: what ann owns she keeps, once the verbs are hers.
	owner.Exec("select sb.revoke_admin($1::name)", admins)
	a.ExecError("42501", "select sb.create_queue('q')")
	owner.Exec("select sb.grant_receive('AnnQueue', $1::name)", ann)
	a.Exec("select sb.alter_queue('AnnQueue', retention => true)")
	a.ExecError("42501", "select sb.create_queue('q')")
	a.ExecError("42501", "select sb.alter_queue('WarehouseQueue', retention => false)")
	a.Exec("select sb.drop_queue('AnnQueue'), sb.drop_message_type('AnnType')")
	wantRows(t, "privileges", []string{privileges(owner, ann), privileges(owner, admins)}, "0 0 0", "0 0 0")
}

// Rules
func TestAlterAuthorization(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	alice, bob := db.CreateRole(t, "alice"), db.CreateRole(t, "bob")
	owner.ExecError("42501", "select sb.alter_authorization('queue', 'OrderQueue', $1::name)", alice)
	grant(t, db, alice, db.Owner)
	owner.Exec(`
create function public.step() returns void language sql as '';
select sb.create_queue('Other', activation_procedure => 'public.step', activation_enabled => false),
       sb.create_route('r', 'LOCAL')`)
	for kind, name := range map[string]string{
		"message_type": "Request", "contract": "Buy", "queue": "Other", "service": "Orders", "route": "r",
	} {
		owner.Exec("select sb.alter_authorization($1, $2, $3::name)", kind, name, alice)
	}
	a := db.SessionAs(t, "alice", alice)
	wantRows(t, "what alice owns", a.Query(`
select t.owner from sb.service_message_types as t where t.name = 'Request'
union all select c.owner from sb.service_contracts as c where c.name = 'Buy'
union all select q.owner from sb.service_queues as q
union all select q.execute_as from sb.service_queues as q
union all select s.owner from sb.services as s
union all select r.owner from sb.routes as r`), alice, alice, alice, alice, alice, alice)
	a.Exec(`
select sb.alter_message_type('Request', 'WELL_FORMED_JSON'), sb.alter_queue('Other', enabled => false),
       sb.alter_queue('Other', enabled => true), sb.alter_service('Orders', add_contracts => '{Buy}'), sb.alter_route('r', service_name => 's'),
       sb.grant_references('Buy', 'public')`)
	// What is not hers: a queue for her service, a validator, a role for her procedures.
	a.ExecError("42501", "select sb.alter_service('Orders', 'WarehouseQueue')")
	a.Exec("create function pg_temp.yes(jsonb) returns boolean language sql return true")
	owner.Exec("create function public.yes(jsonb) returns boolean language sql return true")
	a.ExecError("42501", "select sb.alter_message_type('Request', 'VALID_JSON', 'public.yes(jsonb)')")
	a.ExecError("42501", "select sb.alter_queue('Other', execute_as => $1::name)", bob)
	a.ExecError("42501", "select sb.alter_authorization('queue', 'Other', $1::name)", bob)
	a.ExecError("42501", "select sb.create_queue('q')")
	a.Exec("select sb.alter_service('Orders', 'Other')")
	grant(t, db, bob, alice)
	a.Exec("select sb.alter_queue('Other', execute_as => $1::name)", bob)
	// An admin is not everybody: what runs as bob is for members of bob to choose.
	carol := db.CreateRole(t, "carol")
	owner.Exec("select sb.grant_admin($1::name)", carol)
	db.SessionAs(t, "carol", carol).ExecError("42501", "select sb.alter_queue('Other', activation_procedure => 'public.step')")
	a.Exec("select sb.alter_authorization('service', 'Orders', $1::name)", bob)
	db.SessionAs(t, "bob", bob).Exec("select sb.drop_service('Orders')")
	wantRows(t, "privileges", []string{privileges(owner, bob)}, "0 0 0")
}

// TestRealCaller: the caller is whoever current_user is. A definer function lends its owner's rights, the session's
// user lends none, and a role that is only set has its own.
// Rules: R-127
func TestRealCaller(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	alice, bob := db.CreateRole(t, "alice"), db.CreateRole(t, "bob")
	owner.Exec("select sb.grant_receive('OrderQueue', $1::name), sb.grant_references('Buy', $1::name), sb.grant_send('Orders', $2::name)", alice, bob)
	owner.Exec(fmt.Sprintf("create schema app; grant all on schema app to %q; grant usage on schema app to public", alice))
	a, b := db.SessionAs(t, "alice", alice), db.SessionAs(t, "bob", bob)
	a.Exec(`
create function app.order(body text) returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  handle uuid := sb.begin_dialog('Orders', 'Warehouse', 'Buy');
begin
  perform sb.send(handle, 'Request', body);
  return handle;
end
$$;
create view app.mine as select count(*) from sb.conversation_endpoints;
grant select on app.mine to public`)
	handle := b.Value("select app.order('x')")
	b.ExecError("42501", "select sb.send($1::uuid, 'Request', 'x'::text)", handle)
	b.ExecError("42501", "select sb.begin_dialog('Orders', 'Warehouse', 'Buy')")
	wantRows(t, "alice sees", a.Query("select * from app.mine"), "1")
	wantRows(t, "bob sees", b.Query("select * from app.mine"), "0")

	super := db.Superuser(t)
	for _, sql := range []string{
		fmt.Sprintf("set role %q", bob),
		"select sb.begin_dialog('Orders', 'Warehouse', 'Buy')",
	} {
		_, err := super.Exec(t.Context(), sql)
		if strings.HasPrefix(sql, "select") && pgtest.SQLState(err) != "42501" {
			t.Errorf("a superuser that is bob: %v", err)
		}
	}
}

// TestInnerFunctions: whoever may call the verbs may execute what is behind them, but has no way to name it.
func TestInnerFunctions(t *testing.T) {
	t.Parallel()
	db, owner := newApplication(t)
	alice := db.CreateRole(t, "alice")
	owner.Exec("select sb.grant_receive('OrderQueue', $1::name)", alice)
	a := db.SessionAs(t, "alice", alice)
	call := fmt.Sprintf("sb_internal._receive(%s, 'WarehouseQueue', null, null, null, null)", "'"+db.Owner+"'")
	for _, sql := range []string{
		"select * from " + call,
		"select 'sb_internal._receive'::regproc",
		"select 'sb_internal._receive(name, text, integer, uuid, uuid, interval)'::regprocedure",
		"create function pg_temp.f() returns bigint language sql begin atomic select count(*) from " + call + "; end",
		"select * from sb_internal.message", "select nextval('sb_internal.queuing_order')", "table sb.conversation_group",
		"insert into sb.conversation_state values (gen_random_uuid(), '{}')", "delete from sb.queue_messages",
	} {
		_, err := a.Conn.Exec(t.Context(), sql)
		if state := pgtest.SQLState(err); state != "42501" && state != "55000" {
			t.Errorf("%s: %v", sql, err)
		}
	}

	// The fast path calls functions by oid.
	var oid uint32
	if err := owner.Conn.QueryRow(t.Context(), "select 'sb_internal._visible'::regproc::oid::bigint").Scan(&oid); err != nil {
		t.Fatal(err)
	}
	pg, err := a.Conn.PgConn().Hijack()
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Conn.Close()
	message := []byte{'F', 0, 0, 0, 0}
	message = binary.BigEndian.AppendUint32(message, oid)
	message = binary.BigEndian.AppendUint16(message, 0) // all arguments as text
	message = binary.BigEndian.AppendUint16(message, 2)
	for _, argument := range []string{db.Owner, "queue"} {
		message = binary.BigEndian.AppendUint32(message, uint32(len(argument)))
		message = append(message, argument...)
	}
	message = binary.BigEndian.AppendUint16(message, 0)
	binary.BigEndian.PutUint32(message[1:], uint32(len(message)-1))
	if _, err := pg.Conn.Write(message); err != nil {
		t.Fatal(err)
	}
	answer, err := pg.Frontend.Receive()
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := answer.(*pgproto3.ErrorResponse); !ok || e.Code != "42501" {
		t.Errorf("fast path: got %T %v", answer, answer)
	}
}

// TestRolesThatAreGone: names in the lists outlive their roles, as after a restore into another cluster.
func TestRolesThatAreGone(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	s.Exec(`
update sb_internal.queue set receivers = '{gone}', owner = 'gone' where name = 'OrderQueue';
update sb_internal.service set senders = '{gone}', owner = 'gone' where name in ('Orders', 'Warehouse');
update sb_internal.contract set referencers = '{gone}' where name = 'Buy';
update sb_internal.broker set admins = '{gone}'`)
	alice := db.CreateRole(t, "alice")
	s.Exec("select sb.grant_send('Orders', $1::name), sb.grant_references('Buy', $1::name)", alice)
	db.SessionAs(t, "alice", alice).ExecError("42501", "select sb.begin_dialog('Orders', 'Warehouse', 'Buy')")
	beginAndSend(s, "x")
	for _, view := range s.Query("select c.oid::regclass from pg_class as c where c.relnamespace = 'sb'::regnamespace and c.relkind = 'v'") {
		s.Exec("select * from " + view)
	}
	wantRows(t, "principal_id", s.Query("select v.principal_id from sb.services as v where v.name = 'Orders'"), "NULL")
	s.Exec("select sb.revoke_admin('gone'), sb.revoke_receive('OrderQueue', 'gone'), sb.revoke_send('Warehouse', 'gone'), sb.drop_service('Orders')")
	s.ExecError("42704", "select sb.revoke_admin('gone')")
}

// TestPrivilegesComeWithNewVersions: loading the grants again gives roles what they may have by now.
func TestPrivilegesComeWithNewVersions(t *testing.T) {
	t.Parallel()
	db, s := newApplication(t)
	alice := db.CreateRole(t, "alice")
	s.Exec("select sb.grant_receive('OrderQueue', $1::name)", alice)
	before := privileges(s, alice)
	s.Exec(fmt.Sprintf("revoke all on all functions in schema sb, sb_internal from %[1]q; revoke all on sb.services from %[1]q", alice))
	grants, err := os.ReadFile("../../sql/grants/grants.sql")
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(string(grants))
	wantRows(t, "privileges", []string{privileges(s, alice)}, before)
}
