package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

func TestBeginDialog(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// Rules: R-135
	a.ExecError("42601", "select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => '1 s', lifetime => '2 s')")
	a.ExecError("22023", "select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation => gen_random_uuid(), related_conversation_group => gen_random_uuid())")

	// Neither a service nor its contracts are looked for at the far end.
	// Rules: R-137
	for _, to := range []string{"'Nowhere', 'Talk'", "'Right', 'DEFAULT'", "'Nowhere', 'Talk', broker_instance => 'deadbeef'"} {
		handle := a.Value("select sb.begin_dialog('Left', " + to + ")")
		want(t, to, []string{stateOf(a, handle)}, "SO")
		end(a, handle)
	}
	// Rules: R-139
	for _, current := range []string{"CURRENT DATABASE", "current database", "Current Database"} {
		handle := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', broker_instance => $1)", current)
		want(t, current, a.Query("select e.far_broker_instance = b.broker_instance::text from sb.conversation_endpoints as e, sb.broker as b where e.conversation_handle = $1::uuid", handle), "t")
		say(a, handle, "x")
		want(t, current, take(b, "'RightQueue'"), "x")
	}

	// One second and 2147483647 of them are lifetimes; without one there is none.
	// Rules
	for lifetime, shown := range map[string]string{"'1 s'": "t", "'2147483647 s'": "t", "null": "NULL"} {
		handle := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => " + lifetime + ")")
		want(t, lifetime, a.Query("select lifetime between now() and now() + "+lifetime+"::interval + interval '1 day' from sb.conversation_endpoints where conversation_handle = $1::uuid", handle), shown)
	}
	for _, lifetime := range []string{"0", "-1 s", "2147483648 s"} {
		a.ExecError("S8411", "select sb.begin_dialog('Left', 'Right', 'Talk', lifetime => $1::text::interval)", lifetime)
	}

	// A group of its own, nothing sent, nobody told.
	// Rules
	messages := a.Value("select count(*) from sb.queue_messages")
	one, two := begin(a), begin(a)
	if groupOf(a, one) == groupOf(a, two) {
		t.Error("two dialogs share a group")
	}
	want(t, "endpoint", a.Query(`
select e.state, e.is_initiator, e.priority, e.send_sequence, e.conversation_id = e.conversation_handle,
       (select count(*) from sb.conversation_endpoints as o where o.conversation_id = e.conversation_id)
  from sb.conversation_endpoints as e where e.conversation_handle = $1::uuid`, one), "SO|t|5|0|t|1")
	want(t, "messages", a.Query("select count(*) from sb.queue_messages union all select count(*) from sb.transmission_queue"), messages, "0")

	// Rules: R-147
	for _, encryption := range []string{"true", "false"} {
		handle := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', encryption => " + encryption + ")")
		say(a, handle, "plain")
		want(t, "encryption "+encryption, take(b, "'RightQueue'"), "plain")
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// Each of several gets what a SEND of its own would have brought; what waits is kept once for each.
	// Rules
	one, two := begin(a), begin(a)
	say(a, one, "first")
	take(b, "'RightQueue'")
	a.Exec(stopRight)
	a.Exec("select sb.multicast(array[$1, $2]::uuid[], 'Note', 'to both')", one, two)
	want(t, "waiting", a.Query(`
select conversation_handle = $1::uuid, message_sequence_number, sb.body_text(message_body) from sb.transmission_queue order by 2`, one), "f|0|to both", "t|1|to both")
	a.Exec(startRight)
	want(t, "delivered", append(take(b, "'RightQueue'"), take(b, "'RightQueue'")...), "to both", "to both")

	// The first SEND makes the initiator CO at once, delivered or not.
	// Rules: R-160
	a.Exec(stopRight)
	waits := begin(a)
	say(a, waits, "x")
	want(t, "state", []string{stateOf(a, waits)}, "CO")
	a.Exec(startRight)
	take(b, "'RightQueue'")

	// Who may send is decided with the first message; a right taken back later stops new dialogs only.
	// Rules: R-381
	db2, o, r := newTalk(t)
	stranger := db2.CreateRole(t, "stranger")
	if _, err := db2.Superuser(t).Exec(t.Context(), "grant "+stranger+" to "+db2.Owner); err != nil {
		t.Fatal(err)
	}
	o.Exec("select sb.alter_authorization('service', 'Left', $1), sb.grant_send('Right', $1)", stranger)
	left, _ := start(o, "allowed")
	o.Exec("select sb.revoke_send('Right', $1)", stranger)
	say(o, left, "still allowed")
	want(t, "the dialog goes on", take(r, "'RightQueue'"), "allowed", "still allowed")
	say(o, begin(o), "refused")
	want(t, "a new one is refused", take(o, "'LeftQueue'"), "Error -8494")

	// Whoever sends, what arrives names services only.
	// Rules: R-375
	want(t, "columns that name a person", a.Query(`
select a.name from pg_proc as p, unnest(p.proargnames) as a (name)
 where p.oid = 'sb.receive'::regproc and a.name ~ 'user|role|login|caller|owner|principal'`))

	// What ends the dialog for the moment lets another one pass; what is wrong for good does not.
	// Rules: R-269
	for code, ruin := range map[string]string{
		"-8462": "select sb.end_conversation((select conversation_handle from sb.conversation_endpoints where conversation_id = '$1' and not is_initiator), cleanup => true); select sb.send('$1', 'Note', 'x')",
		"-9719": "select sb.error_broker_conversations()",
	} {
		left, _ := start(a, "x")
		a.Exec(strings.ReplaceAll(ruin, "$1", left))
		want(t, "ruined", take(a, "'LeftQueue', 1, for_conversation => '"+left+"'"), "Error "+code)
		for _, handle := range a.Query("select conversation_handle from sb.conversation_endpoints") {
			end(a, handle)
		}
		again, _ := start(a, "on a new dialog")
		want(t, "again after "+code, take(b, "'RightQueue'"), "on a new dialog")
		end(a, again)
	}
	for range 2 {
		handle := a.Value("select sb.begin_dialog('Left', 'Right')")
		a.Exec("select sb.send($1::uuid)", handle)
		want(t, "refused for good", take(a, "'LeftQueue'"), "Error -8408")
	}
}

func TestReceive(t *testing.T) {
	t.Parallel()
	db, a, b := newTalk(t)
	left, right := start(a, "zero")
	again := func(bodies ...string) {
		take(b, "'RightQueue'")
		say(a, left, bodies...)
	}

	// A filter of the statement around it does not limit what is received, nor does a LIMIT.
	// Rules
	for _, form := range []string{"select 1 from sb.receive('RightQueue') where message_sequence_number < 0", "select 1 from sb.receive('RightQueue') limit 0"} {
		again("one", "two")
		b.Exec(form)
		n := 0
		if strings.HasSuffix(form, "limit 0") {
			n = 2 // which does not even call it
		}
		if got := take(b, "'RightQueue'"); len(got) != n {
			t.Errorf("%s: left %q", form, got)
		}
	}
	a.ExecError("22023", "select * from sb.receive('RightQueue', for_conversation => $1::uuid, for_group => $1::uuid)", right)

	// The list of columns is the statement's around it: names, expressions, sub-queries.
	// Rules: R-171
	again("one")
	wantQuery(t, b, "expressions", `
select upper(sb.body_text(r.message_body)), (select s.name from sb.services as s where s.service_id = r.service_id), length(r.message_type_name)
  from sb.receive('RightQueue') as r`, "ONE|Right|4")

	// Into variables: the first of several rows, and all of them have left. No row: null.
	// Rules
	again("one", "two", "three")
	a.Exec(`
create function public.read(out body text, out rows bigint) language plpgsql as $$
begin
  body := 'untouched';
  select sb.body_text(r.message_body) into body from sb.receive('RightQueue') as r;
  get diagnostics rows = row_count;
end $$`)
	want(t, "into", b.Query("select * from public.read()"), "one|1")
	want(t, "nothing is left", b.Query("select * from public.read()"), "NULL|0")

	// Into a table; then row by row in the order of arrival.
	// Rules
	again("one", "two", "three")
	b.Exec("create temp table batch (number bigint, body text, n bigint)")
	if tag := b.Exec("insert into batch select r.queuing_order, sb.body_text(r.message_body), r.message_sequence_number from sb.receive('RightQueue') as r"); tag.RowsAffected() != 3 {
		t.Errorf("received %v", tag)
	}
	want(t, "batch", b.Query("select body from batch order by number"), "one", "two", "three")
	if tag := b.Exec("insert into batch select r.queuing_order, '', 0 from sb.receive('RightQueue') as r"); tag.RowsAffected() != 0 {
		t.Errorf("received %v", tag)
	}

	// Of several who wait each gets a message, whichever.
	// Rules: R-201
	var waiters []<-chan error
	for i := range 3 {
		waiters = append(waiters, db.Session(t, fmt.Sprint("waiter ", i)).GoExec("select 1 / count(*)::integer from sb.receive('RightQueue', 1, timeout => '60 s')"))
	}
	for i := range waiters {
		start(a, fmt.Sprint("for somebody ", i))
	}
	for _, waiter := range waiters {
		if err := wait(t, waiter); err != nil {
			t.Error(err)
		}
	}

	// Only these verbs wait for messages.
	// Rules: R-195
	wantQuery(t, a, "verbs with a timeout", `
select p.proname from pg_proc as p where p.pronamespace = 'sb'::regnamespace and 'timeout' = any (p.proargnames) order by 1`,
		"begin_conversation_timer", "get_conversation_group", "receive")

	// A view may wait, and so may a cursor.
	// Rules: R-202
	a.Exec("create view public.waiting as select sb.body_text(r.message_body) as body from sb.receive('RightQueue', timeout => '60 s') as r")
	result := b.GoExec("select 1 / count(*)::integer from public.waiting")
	say(a, left, "to the view")
	if err := wait(t, result); err != nil {
		t.Error(err)
	}
	again("one", "two")
	b.Begin()
	b.Exec("declare c cursor for select sb.body_text(r.message_body) from sb.receive('RightQueue', timeout => '60 s') as r")
	want(t, "cursor", append(b.Query("fetch 1 from c"), b.Query("fetch 1 from c")...), "one", "two")
	b.Commit()

	// A receive that waits keeps what its transaction has locked, waits its time however long others wait for it, and
	// then returns nothing.
	// Rules
	a.Exec("create table public.counter (n integer); insert into public.counter values (0)")
	b.Begin()
	b.Exec("update public.counter set n = n + 1")
	var empty bool
	waiting := b.GoExec("select 1 / (1 - count(*))::integer from sb.receive('RightQueue', timeout => '1 s')")
	sender := db.Session(t, "sender")
	sender.Begin()
	blocked := sender.GoExec("update public.counter set n = n + 1")
	pgtest.WaitBlocked(t, sender, b)
	began := time.Now()
	err := wait(t, waiting)
	empty = err == nil
	if !empty || time.Since(began) > 30*time.Second {
		t.Errorf("the wait ended with %v after %v", err, time.Since(began))
	}
	b.Commit()
	if err := wait(t, blocked); err != nil {
		t.Error(err)
	}
	sender.Commit()

	// After an error a transaction goes on only behind a savepoint; outside one, the next statement is fine.
	// Rules
	a.Exec(stopRight)
	b.ExecError("S9617", "select * from sb.receive('RightQueue')")
	b.Begin()
	b.Exec("savepoint s")
	b.ExecError("S9617", "select * from sb.receive('RightQueue')")
	b.Exec("rollback to s")
	b.Exec("select 1")
	b.ExecError("S9617", "select * from sb.receive('RightQueue')")
	b.ExecError("25P02", "select 1")
	b.Rollback()
	a.Exec(startRight)

	// One transaction may hold several groups.
	// Rules: R-205
	var handles []string
	for i := range 3 {
		_, right := start(a, fmt.Sprint("group ", i))
		handles = append(handles, right)
	}
	b.Begin()
	first := b.Value("select sb.get_conversation_group('RightQueue')")
	want(t, "the first", []string{groupOf(a, handles[0])}, first)
	want(t, "a group one holds may come again", b.Query("select sb.get_conversation_group('RightQueue')"), first)
	b.Exec("select * from sb.receive('RightQueue', for_group => $1::uuid)", first)
	second := b.Value("select sb.get_conversation_group('RightQueue')")
	a.Begin()
	third := a.Value("select sb.get_conversation_group('RightQueue')")
	want(t, "three groups", []string{second, third}, groupOf(a, handles[1]), groupOf(a, handles[2]))
	a.Rollback()
	b.Commit()
	for range 2 {
		take(b, "'RightQueue'")
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// Rules
	left, right := start(a, "x")
	a.ExecError("22023", "select sb.end_conversation($1::uuid, 1, repeat('x', 3001))", left)
	a.Exec("select sb.end_conversation($1::uuid, 1, repeat('x', 3000))", left)
	wantQuery(t, b, "description", "select length(sb.error_description(message_body)) from sb.receive('RightQueue', 1)", "3000")

	// All that is in the local queue goes, read or not, retained or not, and nothing of the handle can be used any more.
	// Rules
	end(b, right)
	a.Exec("select sb.alter_queue('RightQueue', retention => true)")
	left, right = start(a, "read", "unread")
	take(b, "'RightQueue', 1")
	say(b, right, "sent")
	wantQuery(t, a, "before", "select status from sb.queue_messages where queue_name = 'RightQueue' order by 1", "0", "1", "3")
	end(b, right)
	wantQuery(t, a, "after", "select status from sb.queue_messages where queue_name = 'RightQueue'")
	b.ExecError("S8426", "select sb.send($1::uuid, 'Note')", right)
	b.ExecError("S8426", "select * from sb.receive('RightQueue', for_conversation => $1::uuid)", right)
	end(a, left)
	a.Exec("select sb.alter_queue('RightQueue', retention => false)")

	// A target that nobody reads stays behind, its peer long gone.
	// Rules
	left, right = start(a, "x")
	end(a, left)
	a.Exec("select sb.maintain()")
	want(t, "the pile", []string{stateOf(a, left), stateOf(a, right)}, "", "DI")
	take(b, "'RightQueue'")
	want(t, "read, not ended", []string{stateOf(a, right)}, "DI")
	end(b, right)

	// Fire and forget: the message arrives, and of the conversation nothing is left once the target has ended.
	// Rules
	left = begin(a)
	a.Begin()
	say(a, left, "fire")
	end(a, left)
	a.Commit()
	want(t, "the sender's side", []string{stateOf(a, left)}, "")
	wantQuery(t, b, "arrived", "select sb.end_conversation(conversation_handle), message_type_id from sb.receive('RightQueue', 1)", "|65536")
	wantQuery(t, a, "endpoints", "select * from sb.conversation_endpoints")
	refused := a.Value("select sb.begin_dialog('Left', 'Right')")
	a.Exec(stopRight)
	a.Exec("select sb.send($1::uuid, 'DEFAULT', 'to one that does not accept it')", refused)
	end(a, refused)
	a.Exec(startRight)
	want(t, "an error nobody hears of", append(take(a, "'LeftQueue'"), take(b, "'RightQueue'")...))
	wantQuery(t, a, "endpoints", "select * from sb.conversation_endpoints")

	// A dialog has ended only when both sides have said so, the peer's END is not enough.
	// Rules
	for _, how := range []string{"$1::uuid", "$1::uuid, 5, 'x'", "$1::uuid, cleanup => true", "(select $1::uuid)"} {
		left, right := start(a, "x")
		a.Exec("select sb.end_conversation("+how+")", left)
		want(t, how, []string{stateOf(a, left)}, "")
		if stateOf(a, right) == "" {
			t.Errorf("%s ended both sides", how)
		}
		end(a, right)
	}

	// What a restart needs is in tables that survive it, timers too.
	// Rules: R-236
	wantQuery(t, a, "tables that are not logged", `
select c.oid::regclass from pg_class as c
 where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace) and c.relkind in ('r', 'S') and c.relpersistence <> 'p'`)
}

func TestPoison(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	isOn := func(queue string) string {
		return a.Value("select is_receive_enabled from sb.service_queues where name = $1", queue)
	}
	a.Exec(`
select sb.create_queue('WatchQueue'), sb.create_service('Watch', 'WatchQueue', '{https://schemas.microsoft.com/SQL/Notifications/PostEventNotification}'),
       sb.create_event_notification('off', 'RightQueue', 'BROKER_QUEUE_DISABLED', 'Watch')`)
	left, right := start(a, "zero")

	// With the handling off nothing is counted, and no event is sent either.
	// Rules: R-357
	a.Exec("select sb.alter_queue('RightQueue', poison_message_handling => false)")
	rollBack(b, 6)
	a.Exec("select sb.maintain()")
	want(t, "on", []string{isOn("RightQueue")}, "t")
	want(t, "no event", take(a, "'WatchQueue'"))
	a.Exec("select sb.alter_queue('RightQueue', poison_message_handling => true)")

	// A look inside that is rolled back counts like any other; only this side's queue is closed.
	// Rules
	rollBack(b, 4)
	want(t, "four looks", []string{isOn("RightQueue")}, "t")
	rollBack(b, 1)
	want(t, "five looks", []string{isOn("RightQueue"), isOn("LeftQueue")}, "f", "t")
	a.Exec("select sb.maintain()")
	wantQuery(t, a, "event", "select message_type_id from sb.receive('WatchQueue')", "4")

	// A deadlock's victim has rolled back as well.
	// Rules: R-354
	a.Exec(startRight)
	a.Exec("select sb.set_option('poison_message_threshold', '1')")
	a.Exec("create table public.counter (id integer primary key, n integer); insert into public.counter values (1, 0), (2, 0)")
	for isOn("RightQueue") == "t" { // until the reader is the one that is chosen
		a.Begin()
		a.Exec("update public.counter set n = n + 1 where id = 1")
		b.Begin()
		b.Exec("select * from sb.receive('RightQueue')")
		b.Exec("update public.counter set n = n + 1 where id = 2")
		reader := b.GoExec("update public.counter set n = n + 1 where id = 1")
		pgtest.WaitBlocked(t, b, a)
		other := wait(t, a.GoExec("update public.counter set n = n + 1 where id = 2"))
		a.Rollback()
		if err := wait(t, reader); err == nil {
			b.Commit()
			say(a, left, "again")
		} else {
			b.Rollback()
			if other != nil {
				t.Fatal(err, other)
			}
		}
	}
	a.Exec(startRight)

	// Ended by somebody else, the conversation is gone without a word to its reader, and so is the state of its group.
	// Rules: R-360
	a.Exec("select sb.create_state_table('public.progress', 'step integer'), sb.create_state_table('public.kept', 'step integer', drop_on_end => false)")
	group := groupOf(a, right)
	a.Exec("insert into public.progress values ($1, 1)", group)
	a.Exec("insert into public.kept values ($1, 1)", group)
	a.Exec("select sb.end_conversation($1::uuid, 1, 'poison')", right)
	want(t, "nothing for the reader", take(b, "'RightQueue'"))
	wantQuery(t, a, "state", "select (select count(*) from public.progress), (select count(*) from public.kept)", "0|1")
	want(t, "its sender knows", take(a, "'LeftQueue'"), "Error 1")
}
