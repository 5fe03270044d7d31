package sqltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// What a side may do. $1 is a conversation of that side, $2 another conversation of it, %[1]d the number of its service
// and %[2]d of the other one.
var sideVerbs = []struct {
	name, sql string
	uses      int // how many of the arguments
}{
	{"begin", "select sb.begin_dialog('Service%[1]d', 'Service%[2]d', 'Talk')", 0},
	{"begin related", "select sb.begin_dialog('Service%[1]d', 'Service%[2]d', 'Talk', related_conversation => $1::uuid)", 1},
	{"begin and send", "select sb.send(sb.begin_dialog('Service%[1]d', 'Service%[2]d', 'Talk'), 'Note', 'first'::text)", 0},
	{"send", "select sb.send($1::uuid, 'Note', 'body'::text)", 1},
	{"send batch", "select sb.send_batch($1::uuid, 'Note', array['a', 'b', 'c']::bytea[])", 1},
	{"multicast", "select sb.multicast(array[$1, $2]::text[]::uuid[], 'Note', 'body'::bytea)", 2},
	{"receive", "select * from sb.receive('Queue%[1]d')", 0},
	{"receive one", "select * from sb.receive('Queue%[1]d', 1)", 0},
	{"receive for conversation", "select * from sb.receive('Queue%[1]d', for_conversation => $1::uuid)", 1},
	{"get group", "select sb.get_conversation_group('Queue%[1]d')", 0},
	{"move", "select sb.move_conversation($1::uuid, (select conversation_group_id from sb.conversation_endpoints where conversation_handle = $2::uuid))", 2},
	{"timer", "select sb.begin_conversation_timer($1::uuid, '1 hour')", 1},
	{"cancel timer", "select sb.cancel_conversation_timer($1::uuid)", 1},
	{"state", "select sb.set_state((select conversation_group_id from sb.conversation_endpoints where conversation_handle = $1::uuid), '1')", 1},
	{"end", "select sb.end_conversation($1::uuid)", 1},
	{"end with error", "select sb.end_conversation($1::uuid, 7, 'no')", 1},
	{"cleanup", "select sb.end_conversation($1::uuid, cleanup => true)", 1},
}

// Whatever one side has done in a transaction still open, nothing that the other side does waits for it: every verb
// against every verb, with both queues on and with both off.
func TestSidesNeverWait(t *testing.T) {
	t.Parallel()
	for _, enabled := range []bool{true, false} {
		t.Run(fmt.Sprintf("enabled %v", enabled), func(t *testing.T) {
			t.Parallel()
			c := newChaos(t)
			handles := c.dialogsBetween(2)
			one, other, watcher := c.owner("one"), c.owner("other"), c.owner("watcher")
			other.Exec("set lock_timeout = '3s'")
			// Messages and due timers for either side to receive.
			for _, left := range handles {
				for _, handle := range []string{left, c.peer(left)} {
					one.Exec("select sb.send($1::uuid, 'Note', 'ready'::text)", handle)
					one.Exec("select sb.begin_conversation_timer($1::uuid, '1 ms')", handle)
				}
			}
			one.Exec("select sb.alter_queue('Queue0', enabled => $1), sb.alter_queue('Queue1', enabled => $1)", enabled)
			run := func(s *pgtest.Session, service, verb int) error {
				v := sideVerbs[verb]
				args := []any{handles[0], handles[1]}
				if service == 1 {
					args = []any{c.peer(handles[0]), c.peer(handles[1])}
				}
				sql := v.sql
				if v.uses == 0 || slices.Contains([]string{"receive", "receive one", "get group"}, v.name) || verb < 3 {
					sql = fmt.Sprintf(v.sql, service, 1-service)
				} else if v.name == "receive for conversation" {
					sql = fmt.Sprintf(v.sql, service)
				}
				_, err := s.Conn.Exec(t.Context(), sql, args[:v.uses]...)
				if code := pgtest.SQLState(err); code == "S9617" && !enabled {
					return nil
				}
				return err
			}
			for service := range 2 {
				for i := range sideVerbs {
					for j := range sideVerbs {
						one.Begin()
						if err := run(one, service, i); err != nil {
							t.Fatalf("%s alone: %v", sideVerbs[i].name, err)
						}
						other.Begin()
						done := other.Go(func(context.Context, *pgx.Conn) error { return run(other, 1-service, j) })
						select {
						case err := <-done:
							if err != nil {
								t.Errorf("side %d has done %s; %s of the other side: %v", service, sideVerbs[i].name, sideVerbs[j].name, err)
							}
						case <-time.After(time.Second):
							t.Errorf("side %d has done %s; %s of the other side waits for %s", service, sideVerbs[i].name, sideVerbs[j].name,
								watcher.Value("select pg_blocking_pids($1)", other.PID()))
							wait(t, done)
						}
						other.Rollback()
						one.Rollback()
					}
				}
			}
		})
	}
}

// A SEND waits for a SEND, and an END waits behind both: the SEND has its lock first, and needs no other one that the END
// holds.
func TestSendBehindSendAgainstEnd(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	one, two, ender := c.owner("one"), c.owner("two"), c.owner("ender")
	for i, handle := range c.dialogsBetween(4) {
		if i%2 == 1 {
			handle = c.peer(handle)
		}
		one.Begin()
		one.Exec("select sb.send($1::uuid, 'Note', 'one'::text)", handle)
		sent := two.GoExec("select sb.send($1::uuid, 'Note', 'two'::text)", handle)
		pgtest.WaitBlocked(t, two, one)
		ended := ender.GoExec("select sb.end_conversation($1::uuid)", handle)
		pgtest.WaitBlocked(t, ender, two)
		one.Commit()
		// Whichever comes first.
		if err := wait(t, sent); err != nil && pgtest.SQLState(err) != "S8426" {
			t.Error(err)
		}
		if err := wait(t, ended); err != nil {
			t.Error(err)
		}
	}
}

// A multicast locks its conversations one after the other. A reader that holds their group answers them in the order in
// which messages came: neither is the other's victim.
func TestMulticastAgainstReader(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	handles := c.dialogsBetween(3)
	slices.Sort(handles)
	s, other, caster, reader := c.owner("setup"), c.owner("other"), c.owner("caster"), c.owner("reader")
	for _, handle := range handles[1:] {
		s.Exec("select sb.move_conversation($1::uuid, $2::uuid)", handle, handles[0])
	}
	s.Exec("select sb.send($1::uuid, 'Note', 'late'::text)", c.peer(handles[2]))
	s.Exec("select sb.send($1::uuid, 'Note', 'early'::text)", c.peer(handles[0]))

	other.Begin()
	other.Exec("select sb.send($1::uuid, 'Note', 'slow'::text)", handles[1])
	cast := caster.GoExec("select sb.multicast($1::text[]::uuid[], 'Note', 'all'::bytea)", handles)
	pgtest.WaitBlocked(t, caster, other)
	reader.Begin()
	got := reader.Query("select conversation_handle from sb.receive('Queue0')")
	wantRows(t, "received", got, handles[2], handles[0])
	answered := reader.Go(func(ctx context.Context, conn *pgx.Conn) error {
		for _, handle := range got {
			if _, err := conn.Exec(ctx, "select sb.send($1::uuid, 'Note', 'answer'::text)", handle); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, "commit")
		return err
	})
	other.Commit()
	if err := errors.Join(wait(t, cast), wait(t, answered)); err != nil {
		t.Error(err)
	}
	for _, handle := range handles {
		n := s.Value("select count(*) from sb.receive('Queue1', for_conversation => $1::uuid)", c.peer(handle))
		wantRows(t, "messages", []string{n}, "2")
	}
}

// DROP SERVICE terminates conversations that a multicast is in the middle of.
func TestMulticastAgainstDropService(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	s, other, caster, dropper := c.owner("setup"), c.owner("other"), c.owner("caster"), c.owner("dropper")
	s.Exec("select sb.create_service('Doomed', 'Queue0', '{Talk}')")
	// Locked in the order of the handles, the two of the service have to lie around the one that is not.
	var handles []string
	for len(handles) == 0 || !slices.IsSorted(handles) {
		handles = nil
		for _, from := range []string{"Doomed", "Service1", "Doomed"} {
			handles = append(handles, s.Value("select sb.begin_dialog($1::text, 'Service0', 'Talk')", from))
		}
	}
	s.Exec("select sb.send($1::uuid, 'Note', 'first'::text)", handles[0])
	other.Begin()
	other.Exec("select sb.send($1::uuid, 'Note', 'slow'::text)", handles[1])
	cast := caster.GoExec("select sb.multicast($1::text[]::uuid[], 'Note', 'all'::bytea)", handles)
	pgtest.WaitBlocked(t, caster, other)
	dropped := dropper.GoExec("select sb.drop_service('Doomed')")
	time.Sleep(300 * time.Millisecond)
	other.Commit()
	// Whoever came first: the message went to all, or to nobody.
	if err := wait(t, cast); err != nil && pgtest.SQLState(err) != "S8426" {
		t.Error(err)
	}
	if err := wait(t, dropped); err != nil {
		t.Error(err)
	}
	wantRows(t, "peers that do not know", s.Query(`
select e.conversation_handle from sb.conversation_endpoints as e
 where e.far_service = 'Doomed' and e.state <> 'ER'`))
}

// NEW_BROKER meets a SEND that has its lock and has not written its message yet: its validator is at work.
func TestNewBrokerAgainstSendInProgress(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	s, sender, admin := c.owner("setup"), c.owner("sender"), c.owner("admin")
	s.Exec(`
create function public.slow(jsonb) returns boolean language plpgsql as
  $$ begin perform pg_advisory_xact_lock(1); return true; end $$;
select sb.create_message_type('Checked', 'VALID_JSON', 'public.slow(jsonb)');
select sb.create_contract('Check', '{Checked}');
select sb.alter_service('Service1', add_contracts => '{Check}')`)
	handle := s.Value("select sb.begin_dialog('Service0', 'Service1', 'Check')")
	s.Exec("select sb.send($1::uuid, 'Checked', '1'::jsonb)", handle)

	s.Begin()
	s.Exec("select pg_advisory_xact_lock(1)")
	sent := sender.GoExec("select sb.send($1::uuid, 'Checked', '2'::jsonb)", handle)
	pgtest.WaitBlocked(t, sender, s)
	renewed := admin.GoExec("select sb.new_broker()")
	time.Sleep(300 * time.Millisecond)
	s.Commit()
	if err := errors.Join(wait(t, sent), wait(t, renewed)); err != nil {
		t.Error(err)
	}
	if left := leftOver(s); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// A contract is dropped while a dialog on it begins: the dialog begins before and is told, or does not begin.
func TestDropContractAgainstBegin(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	s, dropper, beginner := c.owner("setup"), c.owner("dropper"), c.owner("beginner")
	s.Exec("select sb.create_message_type('Rare'), sb.create_contract('Doomed', '{Rare}')")
	dropper.Begin()
	dropper.Exec("select sb.drop_contract('Doomed')")
	begun := beginner.GoExec("select sb.begin_dialog('Service0', 'Service1', 'Doomed')")
	pgtest.WaitBlocked(t, beginner, dropper)
	dropper.Commit()
	if err := wait(t, begun); pgtest.SQLState(err) != "S8425" {
		t.Errorf("begin after drop: %v", err)
	}
	wantRows(t, "without a contract", s.Query(`
select e.conversation_handle from sb_internal.endpoint as e
 where not exists (select from sb_internal.contract as k where k.service_contract_id = e.service_contract_id)`))

	// The other way round the dropper waits and ends it.
	s.Exec("select sb.create_contract('Doomed', '{Rare}')")
	beginner.Begin()
	beginner.Exec("select sb.begin_dialog('Service0', 'Service1', 'Doomed')")
	dropped := dropper.GoExec("select sb.drop_contract('Doomed')")
	time.Sleep(200 * time.Millisecond)
	beginner.Commit()
	if err := wait(t, dropped); err != nil {
		t.Error(err)
	}
	if left := leftOver(s); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// A service moves to another queue while a timer is set and a dialog with a lifetime begins, both uncommitted: what falls
// due does so in the new queue.
func TestAlterServiceAgainstTimers(t *testing.T) {
	t.Parallel()
	for _, verb := range []struct{ name, sql string }{
		{"timer", "select sb.begin_conversation_timer($1::uuid, '300 ms')"},
		{"lifetime", "select sb.begin_dialog('Mobile', 'Service1', 'Talk', lifetime => '300 ms', related_conversation => $1::uuid)"},
	} {
		t.Run(verb.name, func(t *testing.T) {
			t.Parallel()
			c := newChaos(t)
			s, setter, mover := c.owner("setup"), c.owner("setter"), c.owner("mover")
			s.Exec("select sb.create_service('Mobile', 'Queue0', '{Talk}')")
			handle := s.Value("select sb.begin_dialog('Mobile', 'Service1', 'Talk')")

			// The verb first.
			setter.Begin()
			setter.Exec(verb.sql, handle)
			moved := mover.GoExec("select sb.alter_service('Mobile', 'Queue1')")
			time.Sleep(200 * time.Millisecond)
			setter.Commit()
			if err := wait(t, moved); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
			wantRows(t, "old queue", s.Query("select message_type_id from sb.receive('Queue0')"))
			if got := s.Query("select message_type_id from sb.receive('Queue1', timeout => '1 s')"); len(got) != 1 {
				t.Errorf("new queue: %v", got)
			}

			// The move first.
			mover.Begin()
			mover.Exec("select sb.alter_service('Mobile', 'Queue0')")
			set := setter.GoExec(verb.sql, handle)
			time.Sleep(200 * time.Millisecond)
			mover.Commit()
			if err := wait(t, set); err != nil {
				t.Fatal(err)
			}
			time.Sleep(400 * time.Millisecond)
			wantRows(t, "old queue after the second move", s.Query("select message_type_id from sb.receive('Queue1')"))
			if got := s.Query("select message_type_id from sb.receive('Queue0', timeout => '1 s')"); len(got) != 1 {
				t.Errorf("new queue after the second move: %v", got)
			}
		})
	}
}

// The subscriber of an event ends its dialog at the very moment when the event is sent: the SEND that caused the event is
// none the worse for it.
func TestEventAgainstItsSubscribersEnd(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	s, sender, subscriber := c.owner("setup"), c.owner("sender"), c.owner("subscriber")
	s.Exec(`
select sb.create_queue('Events', poison_message_handling => false);
select sb.create_service('Subscriber', 'Events', '{https://schemas.microsoft.com/SQL/Notifications/PostEventNotification}');
select sb.create_event_notification('watch', 'Queue1', 'QUEUE_ACTIVATION', 'Subscriber')`)
	handle := s.Value("select sb.begin_dialog('Service0', 'Service1', 'Talk')")
	s.Exec("select sb.send($1::uuid, 'Note', 'first'::text)", handle)
	event := s.Value("select conversation_handle from sb.receive('Events')")
	// The queue is read to its end, so that the next message is an event again.
	s.Query("select from sb.receive('Queue1')")
	s.Query("select from sb.receive('Queue1')")

	// The event's SEND has decided to send, and is stopped at its own lock while the subscriber's end commits.
	subscriber.Begin()
	subscriber.Exec("select sb.end_conversation($1::uuid)", event)
	blocker := c.owner("blocker")
	blocker.Begin()
	blocker.Exec(`
select from sb_internal.send_counter as c
  join sb_internal.event_notification as n on n.conversation_handle = c.conversation_handle
   for update of c`)
	sent := sender.GoExec("select sb.send($1::uuid, 'Note', 'second'::text)", handle)
	pgtest.WaitBlocked(t, sender, blocker)
	subscriber.Commit()
	blocker.Commit()
	if err := wait(t, sent); err != nil {
		t.Errorf("the message that caused the event: %v", err)
	}
	wantRows(t, "the message", s.Query("select sb.body_text(message_body) from sb.receive('Queue1')"), "second")
}

// ddlCodes are what DDL verbs may answer when others create and drop the same names.
var ddlCodes = []string{"42710", "42704", "S0208", "S8423", "S3716", "S8425", "S9718", "S9717"}

// ddl is one DDL verb, chosen at random, on one of few names.
func ddl(rnd *rand.Rand) string {
	n := rnd.IntN(2)
	verbs := []string{
		"select sb.create_message_type('Type%d')",
		"select sb.alter_message_type('Type%d', 'WELL_FORMED_XML')",
		"select sb.drop_message_type('Type%d')",
		"select sb.create_contract('Contract%d', sent_by_any => array['Type%[1]d'])",
		"select sb.drop_contract('Contract%d')",
		"select sb.create_queue('Q%d')",
		"select sb.alter_queue('Q%d', enabled => true)",
		"select sb.alter_queue('Q%d', enabled => false)",
		"select sb.alter_queue('Q%d', retention => true)",
		"select sb.drop_queue('Q%d')",
		"select sb.create_service('S%d', 'Q%[1]d', array['Contract%[1]d'])",
		"select sb.alter_service('S%d', 'Q0')",
		"select sb.alter_service('S%d', 'Q1')",
		"select sb.alter_service('S%d', add_contracts => array['Contract%[1]d'])",
		"select sb.drop_service('S%d')",
		"select sb.create_broker_priority('P%d', 'Contract%[1]d', 'S%[1]d', priority_level => 7)",
		"select sb.alter_broker_priority('P%d', priority_level => 3)",
		"select sb.drop_broker_priority('P%d')",
		"select sb.create_route('R%d', 'LOCAL', 'S%[1]d')",
		"select sb.drop_route('R%d')",
		"select sb.create_event_notification('E%d', 'Q%[1]d', 'QUEUE_ACTIVATION', 'S0')",
		"select sb.drop_event_notification('E%d', 'Q%[1]d')",
		"select sb.set_option('poison_message_threshold', '%d5')",
		"select sb.disable_broker()", "select sb.enable_broker()",
		"select sb.grant_receive('Q%d', 'public')", "select sb.revoke_receive('Q%d', 'public')",
		"select sb.grant_send('S%d', 'public')",
	}
	verb := verbs[rnd.IntN(len(verbs))]
	if slices.Contains([]byte(verb), '%') {
		return fmt.Sprintf(verb, n)
	}
	return verb
}

// DDL against DDL on the same names, one verb in each transaction and several: no deadlock, and no error that is not one
// of ours.
func TestDDLAgainstDDL(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	var wg sync.WaitGroup
	deadline := time.Now().Add(8 * time.Second)
	for i := range 6 {
		s := c.owner(fmt.Sprintf("ddl%d", i))
		rnd := rand.New(rand.NewPCG(c.seed, uint64(i)))
		wg.Go(func() {
			for time.Now().Before(deadline) {
				if _, err := s.Conn.Exec(t.Context(), "begin"); err != nil {
					t.Error(err)
					return
				}
				for range 1 + rnd.IntN(3) {
					sql := ddl(rnd)
					_, err := s.Conn.Exec(t.Context(), sql)
					if code := pgtest.SQLState(err); err != nil {
						if !slices.Contains(append(ddlCodes, "S9617"), code) {
							t.Errorf("%s: %v", sql, err)
						}
						break
					}
				}
				end := "commit"
				if rnd.IntN(5) == 0 {
					end = "rollback"
				}
				if _, err := s.Conn.Exec(t.Context(), end); err != nil {
					t.Errorf("%s: %v", end, err)
				}
			}
		})
	}
	wg.Wait()
	s := c.owner("check")
	letMinutePass(s)
	for range 10 { // each drops 1000 sequences, those of some 50 queues, and a fast machine has made more
		s.Exec("select sb.maintain()")
	}
	wantRows(t, "status that is not its queue's", s.Query(`
select x.service_id from sb_internal.service_status as x
  join sb_internal.service as s using (service_id)
  join sb_internal.queue as q on q.queue_id = s.queue_id
 cross join sb_internal.broker as b
 where (x.queue_id, x.is_accepting, x.is_queue_enabled, x.is_retention_enabled, x.receivers)
   is distinct from (q.queue_id, b.is_broker_enabled and q.is_enabled, q.is_enabled, q.is_retention_enabled, q.receivers)`))
	wantRows(t, "sequences without a queue", s.Query(`
select c.relname from pg_class as c
 where c.relnamespace = 'sb_internal'::regnamespace and c.relkind = 'S' and c.relname ~ '^queue_[0-9]+_'
   and not exists (select from sb_internal.queue as q where starts_with(c.relname, 'queue_' || q.queue_id || '_'))`))
	wantRows(t, "queues without an alarm", s.Query(`
select q.name from sb_internal.queue as q where to_regclass('sb_internal.queue_' || q.queue_id || '_poison_alarm') is null`))
}

// Services, contracts and queues are dropped and made again under senders, readers and first SENDs: one verb in each
// transaction, no deadlock, only our own errors, and nothing that belongs to nobody.
func TestDropsUnderLoad(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	c.owner("setup").Exec(`
select sb.create_contract('Brief', sent_by_any => '{Note}');
select sb.create_queue('Q'); select sb.create_service('S', 'Q', '{Talk,Brief}')`)
	var mu sync.Mutex
	var handles []string
	codes := map[string]int{}
	deadline := time.Now().Add(12 * time.Second)
	var wg sync.WaitGroup
	workers := uint64(0)
	load := func(allowed []string, verb func(rnd *rand.Rand, handle string) (string, []any)) {
		workers++
		i := workers
		s := c.owner(fmt.Sprintf("w%d", i))
		rnd := rand.New(rand.NewPCG(c.seed, i))
		wg.Go(func() {
			for time.Now().Before(deadline) {
				mu.Lock()
				handle := "00000000-0000-0000-0000-000000000000"
				if len(handles) > 0 {
					handle = handles[rnd.IntN(len(handles))]
				}
				mu.Unlock()
				sql, args := verb(rnd, handle)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				var result *string
				err := s.Conn.QueryRow(ctx, sql, args...).Scan(&result)
				cancel()
				code := pgtest.SQLState(err)
				mu.Lock()
				codes[orElse(code, "ok")]++
				if len(sql) > 20 && sql[:20] == "select sb.begin_dial" && err == nil {
					handles = append(handles, *result)
					if len(handles) > 40 {
						handles = handles[20:]
					}
				}
				mu.Unlock()
				if err != nil && !errors.Is(err, pgx.ErrNoRows) && !slices.Contains(allowed, code) {
					t.Errorf("%s %v: %v", sql, args, err)
					return
				}
			}
		})
	}
	for range 2 {
		load([]string{"S8423", "S8425"}, func(rnd *rand.Rand, _ string) (string, []any) {
			from, to := "S", "Service1"
			if rnd.IntN(2) == 0 {
				from, to = "Service0", "S"
			}
			return "select sb.begin_dialog($1::text, $2::text, $3::text)::text",
				[]any{from, to, []string{"Talk", "Brief"}[rnd.IntN(2)]}
		})
		load([]string{"S8426", "S8429"}, func(_ *rand.Rand, handle string) (string, []any) {
			return "select sb.send($1::text::uuid, 'Note', 'body'::text)::text", []any{handle}
		})
		load([]string{"S8426", "S8429"}, func(rnd *rand.Rand, handle string) (string, []any) {
			mu.Lock()
			defer mu.Unlock()
			many := []string{handle}
			for range 2 {
				if len(handles) > 0 {
					if h := handles[rnd.IntN(len(handles))]; !slices.Contains(many, h) {
						many = append(many, h)
					}
				}
			}
			return "select sb.multicast($1::text[]::uuid[], 'Note', 'body')::text", []any{many}
		})
		load([]string{"S0208"}, func(rnd *rand.Rand, _ string) (string, []any) {
			return "select count(*)::text from sb.receive($1::text, $2::integer)",
				[]any{[]string{"Q", "Q", "Queue0", "Queue1"}[rnd.IntN(4)], []any{nil, 1}[rnd.IntN(2)]}
		})
	}
	load([]string{"S8426", "S8427"}, func(_ *rand.Rand, handle string) (string, []any) {
		return "select sb.end_conversation($1::text::uuid)::text", []any{handle}
	})
	load([]string{}, func(rnd *rand.Rand, _ string) (string, []any) {
		return []string{"select sb.deliver()::text", "select sb.maintain()::text"}[rnd.IntN(2)], nil
	})
	load(append(ddlCodes, "S9617"), func(rnd *rand.Rand, _ string) (string, []any) {
		return []string{
			"select sb.drop_service('S')::text", "select sb.create_service('S', 'Q', '{Talk,Brief}')::text",
			"select sb.create_service('S', 'Q', '{Talk}')::text",
			"select sb.alter_service('S', drop_contracts => '{Brief}')::text",
			"select sb.drop_contract('Brief')::text", "select sb.create_contract('Brief', sent_by_any => '{Note}')::text",
			"select sb.drop_queue('Q')::text", "select sb.create_queue('Q')::text",
			"select sb.alter_service('S', 'Queue0')::text", "select sb.alter_service('S', 'Q')::text",
		}[rnd.IntN(10)], nil
	})
	wg.Wait()
	t.Log(codes)
	if t.Failed() {
		return
	}

	s := c.owner("check")
	for _, check := range []struct{ what, sql string }{
		{"endpoints without a contract that were not told", "select e.conversation_handle from sb_internal.endpoint as e where not exists (select from sb_internal.contract as k where k.service_contract_id = e.service_contract_id) and sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle) <> 'ER'"},
		{"groups without a conversation", "select g.conversation_group_id from sb.conversation_group as g where not exists (select from sb_internal.endpoint as e where e.conversation_group_id = g.conversation_group_id and e.state <> 'DO')"},
		{"conversations without a group", "select e.conversation_handle from sb_internal.endpoint as e where e.state <> 'DO' and not exists (select from sb.conversation_group as g where e.conversation_group_id = g.conversation_group_id)"},
		{"messages in the wrong queue", "select m.conversation_handle from sb_internal.message as m join sb_internal.endpoint as e using (conversation_handle) join sb_internal.service as s using (service_id) where s.queue_id <> m.queue_id"},
		{"peers that were never told", `select e.conversation_handle from sb_internal.endpoint as e
 where e.state = 'CO' and not e.is_initiator and not exists (select from sb_internal.endpoint as p where p.conversation_handle = e.peer_handle)
   and not exists (select from sb_internal.message as m where m.conversation_handle = e.conversation_handle and m.message_type_id in (1, 2))`},
	} {
		wantRows(t, check.what, s.Query(check.sql))
	}
	s.Exec("select sb.end_conversation(conversation_handle, cleanup => true) from sb.conversation_endpoints")
	s.Exec("select sb.maintain()")
	if left := leftOver(s); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// A transaction that holds a lock of a conversation locks many at once, one of which somebody holds who waits for the first
// one. That is a deadlock whatever the many are locked with: one of the two has to be the victim, and soon.
func TestDeadlocksOfMixturesAreFound(t *testing.T) {
	t.Parallel()
	for _, verb := range []struct{ name, sql string }{
		{"multicast", "select sb.multicast(array[$1, $2]::text[]::uuid[], 'Note', 'all')"},
		{"drop service", "select sb.drop_service('Doomed') from (values ($1::text, $2::text)) as v"},
	} {
		t.Run(verb.name, func(t *testing.T) {
			t.Parallel()
			c := newChaos(t)
			s, many, one := c.owner("setup"), c.owner("many"), c.owner("one")
			s.Exec("select sb.create_service('Doomed', 'Queue0', '{Talk}')")
			var handles []string
			for _, from := range []string{"Doomed", "Doomed", "Service0"} {
				handles = append(handles, s.Value("select sb.begin_dialog($1::text, 'Service1', 'Talk')", from))
			}
			const send = "select sb.send($1::uuid, 'Note', 'x'::text)"
			many.Begin()
			many.Exec(send, handles[2])
			one.Begin()
			one.Exec(send, handles[0])
			sent := one.GoExec(send, handles[2])
			pgtest.WaitBlocked(t, one, many)
			// Late enough that the check of the one who waits is over, and has found nothing.
			time.Sleep(1200 * time.Millisecond)
			got := many.GoExec(verb.sql, handles[0], handles[1])
			// The victim's locks are free at once, so both come to an end.
			gotErr, sentErr := wait(t, got), wait(t, sent)
			codes := []string{pgtest.SQLState(gotErr), pgtest.SQLState(sentErr)}
			if slices.Sort(codes); !slices.Equal(codes, []string{"", "40P01"}) {
				t.Errorf("%s: %v; send: %v", verb.name, gotErr, sentErr)
			}
			many.Rollback()
			one.Rollback()
		})
	}
}
