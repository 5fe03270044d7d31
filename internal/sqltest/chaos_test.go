package sqltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// chaosSetUp is two services that begin dialogs with each other, and a clock that stamps what happens. A stamp is taken
// while the verb's lock is held, so that the stamps of one side of a conversation are in lock order.
const chaosSetUp = `
select sb.create_message_type('Note');
select sb.create_contract('Talk', sent_by_any => '{Note}');
select sb.create_queue('Queue0', poison_message_handling => false);
select sb.create_queue('Queue1', poison_message_handling => false);
select sb.create_service('Service0', 'Queue0', '{Talk}');
select sb.create_service('Service1', 'Queue1', '{Talk}');
create sequence public.chaos_clock cache 1;`

// The message types of the system.
const (
	errorType     = 1
	endDialogType = 2
	timerType     = 5
)

// chaos is a database under load with the ledger of what was committed in it. All randomness comes from the seed.
type chaos struct {
	t    *testing.T
	db   *pgtest.DB
	seed uint64
	// retries says that transactions may fail with 40P01 and 40001: they mix verbs.
	retries bool
	// drops says that sides which end with an error, are cleaned up or outlive their lifetime may drop what they
	// have sent, because it waited in the transmission queue.
	drops bool
	// mayBeOff allows S9617.
	mayBeOff bool
	// kills allows failures of the connection itself.
	kills bool
	// deadline bounds the load.
	deadline time.Time

	serial atomic.Int64

	mu       sync.Mutex
	live     [2][]string        // handles by service, roughly those that exist
	dialogs  map[string]string  // initiator to target
	peers    map[string]string  // both ways
	timed    map[string]bool    // handles of dialogs with a lifetime
	sends    map[string][]spoke // by sending handle
	takes    map[string][]heard // by receiving handle
	ends     map[string]ending  // by handle
	doubtful []doubt
	codes    map[string]int // how often a verb ended with a code
	commits  int
}

// spoke is a SEND: the bodies of one step.
type spoke struct {
	stamp  int64
	bodies []string
}

// heard is a message received.
type heard struct {
	stamp, position, sequence, order int64
	typeID                           int
	body                             string
}

// ending is an END.
type ending struct {
	stamp int64
	drops bool // with error or cleanup
}

// doubt is a transaction whose COMMIT was not answered.
type doubt struct {
	xid     string
	effects []effect
}

// effect is what a transaction does to the ledger when it commits.
type effect func(c *chaos)

// chaosSeed is the seed of SBROKER_SEED, to replay a failure, or a new one.
func chaosSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SBROKER_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SBROKER_SEED=%d", seed)
	return seed
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	c := &chaos{
		t: t, db: pgtest.New(t), seed: chaosSeed(t),
		dialogs: map[string]string{}, peers: map[string]string{}, timed: map[string]bool{},
		sends: map[string][]spoke{}, takes: map[string][]heard{}, ends: map[string]ending{},
		codes: map[string]int{},
	}
	c.owner("setup").Exec(chaosSetUp)
	return c
}

func (c *chaos) owner(name string) *pgtest.Session {
	c.t.Helper()
	return c.db.Session(c.t, name)
}

// run starts the loads, each in a goroutine of its own with a connection and random numbers of its own, repeats each
// until the time is over, and waits for all of them.
func (c *chaos) run(d time.Duration, loads ...func(w *worker)) {
	c.t.Helper()
	c.deadline = time.Now().Add(d)
	var wg sync.WaitGroup
	for i, load := range loads {
		wg.Go(func() {
			w := &worker{c: c, name: fmt.Sprintf("w%d", i), rnd: rand.New(rand.NewPCG(c.seed, uint64(i)))}
			defer w.disconnect()
			for time.Now().Before(c.deadline) && !c.t.Failed() {
				load(w)
			}
		})
	}
	wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var codes []string
	for code, n := range c.codes {
		codes = append(codes, fmt.Sprintf("%s %d", code, n))
	}
	slices.Sort(codes)
	c.t.Logf("%v: %d commits, %d dialogs; %s", time.Since(c.deadline.Add(-d)).Round(time.Second/10), c.commits, len(c.dialogs), strings.Join(codes, ", "))
}

// pick returns a handle of the service, or "" when there is none.
func (c *chaos) pick(rnd *rand.Rand, service int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.live[service]); n > 0 {
		return c.live[service][rnd.IntN(n)]
	}
	return ""
}

// peer is the handle of the other side.
func (c *chaos) peer(handle string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peers[handle]
}

// forget takes a handle that is gone off the list.
func (c *chaos) forget(handle string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.live {
		if i := slices.Index(c.live[s], handle); i >= 0 {
			c.live[s] = slices.Delete(c.live[s], i, i+1)
		}
	}
}

// alive is how many handles a service has.
func (c *chaos) alive(service int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.live[service])
}

// worker is one session of the load.
type worker struct {
	c    *chaos
	name string
	rnd  *rand.Rand
	conn *pgx.Conn
}

func (w *worker) chance(percent int) bool { return w.rnd.IntN(100) < percent }

// connect opens the connection, again after it was lost.
func (w *worker) connect(ctx context.Context) error {
	if w.conn != nil && !w.conn.IsClosed() {
		return nil
	}
	config, err := pgx.ParseConfig(w.c.db.URL())
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = "chaos " + w.name
	w.conn, err = pgx.ConnectConfig(ctx, config)
	return err
}

func (w *worker) disconnect() {
	if w.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		w.conn.Close(ctx)
	}
}

// work is a transaction of the load and what it will have done when it commits.
type work struct {
	w       *worker
	c       *chaos
	ctx     context.Context //nolint:containedctx // lives as long as the transaction
	tx      pgx.Tx
	verb    string // the last one, for messages
	xid     string
	effects []effect
}

// errGiveUp makes a transaction roll back on purpose.
var errGiveUp = errors.New("rolled back on purpose")

// transact runs fn in a transaction. It reports whether that committed.
func (w *worker) transact(fn func(x *work) error) bool {
	c := w.c
	// Nothing here takes long unless it hangs, which is what the limit is for; a machine may be very busy.
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := w.connect(ctx); err != nil {
		if !c.kills {
			c.t.Errorf("%s: %v", w.name, err)
		}
		return false
	}
	x := &work{w: w, c: c, ctx: ctx}
	watch := time.AfterFunc(170*time.Second, func() { c.t.Logf("%s hangs:\n%s", w.name, c.activity()) })
	defer watch.Stop()
	err := func() (err error) {
		if x.tx, err = w.conn.Begin(ctx); err != nil {
			return err
		}
		if err := fn(x); err != nil {
			return err
		}
		x.verb += "+commit"
		if c.kills && w.chance(5) {
			// Cut while the server commits, or just before or after.
			socket := w.conn.PgConn().Conn()
			time.AfterFunc(time.Duration(w.rnd.IntN(500))*time.Microsecond, func() { socket.Close() })
		}
		return x.tx.Commit(ctx)
	}()
	if err == nil {
		c.apply(x.effects)
		return true
	}
	// Whom a kill (57P01) meets at COMMIT may have committed, too: the server is told so between that and the answer.
	if code := pgtest.SQLState(err); strings.HasSuffix(x.verb, "+commit") && (code == "" || code == "57P01") && x.xid != "" {
		c.mu.Lock()
		c.doubtful = append(c.doubtful, doubt{x.xid, x.effects})
		c.mu.Unlock()
	}
	x.report(err)
	if x.tx != nil && !w.conn.IsClosed() {
		if err := x.tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) && !c.kills {
			c.t.Errorf("%s: rollback: %v", w.name, err)
		}
	}
	return false
}

// activity is what everybody does and waits for, to be looked at when something hangs.
func (c *chaos) activity() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.db.URL())
	if err != nil {
		return err.Error()
	}
	defer conn.Close(ctx)
	var text string
	if err := conn.QueryRow(ctx, `
select coalesce(string_agg(concat_ws(' | ', a.pid, a.application_name, a.state, clock_timestamp() - a.xact_start, a.wait_event_type,
         a.wait_event, pg_blocking_pids(a.pid), a.query), e'\n' order by a.xact_start), '')
  from pg_stat_activity as a
 where a.datname = current_database() and a.pid <> pg_backend_pid()`).Scan(&text); err != nil {
		return err.Error()
	}
	return text
}

func (c *chaos) apply(effects []effect) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commits++
	for _, e := range effects {
		e(c)
	}
}

// expected are the errors that a verb may meet when others end, move and expire what it works on.
var expected = map[string][]string{
	"begin":      {"S8426"},
	"send":       {"S8426", "S8429"},
	"multicast":  {"S8426", "S8429"},
	"end":        {"S8426", "S8427"},
	"move":       {"S8426", "S8436", "S8438"},
	"timer":      {"S8426", "S8410", "S8458"},
	"cancel":     {"S8426", "S8458"},
	"receive":    {"S8426", "S8436"},
	"group":      {},
	"state":      {"S8436"},
	"toggle":     {},
	"alter":      {},
	"deliver":    {},
	"maintain":   {},
	"statistics": {},
}

// report counts how a transaction failed, and fails the test when it must not fail like that.
func (x *work) report(err error) {
	c := x.c
	if errors.Is(err, errGiveUp) {
		return
	}
	verb, _, _ := strings.Cut(x.verb, "+")
	code := pgtest.SQLState(err)
	c.mu.Lock()
	c.codes[verb+" "+orElse(code, "lost")]++
	c.mu.Unlock()
	switch {
	case slices.Contains(expected[verb], code):
	case c.mayBeOff && code == "S9617":
	case c.retries && (code == "40P01" || code == "40001"):
	case errors.Is(err, context.DeadlineExceeded):
		c.t.Errorf("seed %d: %s: %s hangs", c.seed, x.w.name, x.verb)
	case c.kills && (code == "" || strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "08")):
	default:
		detail := ""
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) {
			detail = fmt.Sprintf("\n  detail: %s\n  where: %s", pgErr.Detail, pgErr.Where)
		}
		c.t.Errorf("seed %d: %s: %s: %v%s", c.seed, x.w.name, x.verb, err, detail)
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// run runs a statement of the verb.
func (x *work) run(verb, sql string, args ...any) error {
	x.verb = verb
	_, err := x.tx.Exec(x.ctx, sql, args...)
	return err
}

// then stamps what the transaction has just done, and notes the effect.
func (x *work) then(e func(c *chaos, stamp int64)) error {
	var stamp int64
	err := x.tx.QueryRow(x.ctx, "select nextval('public.chaos_clock'), pg_current_xact_id()::text").Scan(&stamp, &x.xid)
	if err == nil {
		x.effects = append(x.effects, func(c *chaos) { e(c, stamp) })
	}
	return err
}

// part runs fn in a savepoint, and rolls it back when fn says so.
func (x *work) part(fn func() error) error {
	if err := x.run("savepoint", "savepoint part"); err != nil {
		return err
	}
	before := len(x.effects)
	err := fn()
	if err == nil {
		return x.run("savepoint", "release savepoint part")
	}
	code := pgtest.SQLState(err)
	if code == "" && !errors.Is(err, errGiveUp) {
		return err
	}
	x.effects = x.effects[:before]
	verb := x.verb
	x.report(err)
	if err := x.run("savepoint", "rollback to savepoint part"); err != nil {
		return err
	}
	x.verb = verb
	return nil
}

// begin begins a dialog from the service; extra are further arguments.
func (x *work) begin(service int, extra string, args ...any) (string, error) {
	x.verb = "begin"
	var handle, peer string
	err := x.tx.QueryRow(x.ctx, fmt.Sprintf(
		"select sb.begin_dialog('Service%d', 'Service%d', 'Talk'%s)::text", service, 1-service, extra), args...).Scan(&handle)
	if err == nil {
		err = x.tx.QueryRow(x.ctx, "select peer_handle::text from sb_internal.endpoint where conversation_handle = $1::text::uuid",
			handle).Scan(&peer)
	}
	if err != nil {
		return "", err
	}
	return handle, x.then(func(c *chaos, _ int64) {
		c.dialogs[handle] = peer
		c.peers[handle], c.peers[peer] = peer, handle
		if strings.Contains(extra, "lifetime") {
			c.timed[handle], c.timed[peer] = true, true
		}
		c.live[service] = append(c.live[service], handle)
		c.live[1-service] = append(c.live[1-service], peer)
	})
}

// bodies makes n bodies that name the sender and occur once only.
func (x *work) bodies(handle string, n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("%s/%d", handle, x.c.serial.Add(1))
	}
	return bodies
}

func (x *work) send(handle string) error {
	bodies := x.bodies(handle, 1)
	if err := x.run("send", "select sb.send($1::text::uuid, 'Note', $2::text)", handle, bodies[0]); err != nil {
		return err
	}
	return x.sent(bodies, handle)
}

func (x *work) sendBatch(handle string, n int) error {
	bodies := x.bodies(handle, n)
	var raw [][]byte
	for _, body := range bodies {
		raw = append(raw, []byte(body))
	}
	if err := x.run("send", "select sb.send_batch($1::text::uuid, 'Note', $2)", handle, raw); err != nil {
		return err
	}
	return x.sent(bodies, handle)
}

func (x *work) multicast(handles []string) error {
	bodies := x.bodies("multicast", 1)
	if err := x.run("multicast", "select sb.multicast($1::text[]::uuid[], 'Note', $2)", handles, []byte(bodies[0])); err != nil {
		return err
	}
	return x.sent(bodies, handles...)
}

func (x *work) sent(bodies []string, handles ...string) error {
	return x.then(func(c *chaos, stamp int64) {
		for _, handle := range handles {
			c.sends[handle] = append(c.sends[handle], spoke{stamp, bodies})
		}
	})
}

// arrival is a message as a transaction got it, before anybody knows whether it commits.
type arrival struct {
	handle string
	heard
}

// receive receives from the service's queue; extra are further arguments.
func (x *work) receive(service int, extra string, args ...any) ([]arrival, error) {
	x.verb = "receive"
	rows, err := x.tx.Query(x.ctx, fmt.Sprintf(`
select m.conversation_handle::text, m.message_sequence_number, m.queuing_order, m.message_type_id,
       coalesce(convert_from(m.message_body, 'UTF8'), '')
  from sb.receive('Queue%d'%s) as m`, service, extra), args...)
	if err != nil {
		return nil, err
	}
	var got []arrival
	for rows.Next() {
		var r arrival
		if err := rows.Scan(&r.handle, &r.sequence, &r.order, &r.typeID, &r.body); err != nil {
			rows.Close()
			return nil, err
		}
		r.position = int64(len(got))
		got = append(got, r)
	}
	if err := rows.Err(); err != nil || len(got) == 0 {
		return nil, err
	}
	return got, x.then(func(c *chaos, stamp int64) {
		for _, r := range got {
			r.stamp = stamp
			c.takes[r.handle] = append(c.takes[r.handle], r.heard)
		}
	})
}

// end ends a conversation; how is the rest of the arguments.
func (x *work) end(handle, how string) error {
	err := x.run("end", "select sb.end_conversation($1::text::uuid"+how+")", handle)
	if code := pgtest.SQLState(err); code == "S8426" || code == "S8427" {
		x.c.forget(handle)
	}
	if err != nil {
		return err
	}
	return x.then(func(c *chaos, stamp int64) {
		c.ends[handle] = ending{stamp, how != ""}
		for s := range c.live {
			if i := slices.Index(c.live[s], handle); i >= 0 {
				c.live[s] = slices.Delete(c.live[s], i, i+1)
			}
		}
	})
}

// endings are the forms of END, the plain one most often.
var endings = []string{"", "", "", ", 7, 'no'", ", cleanup => true"}

// groupOf is the group of a conversation as the world sees it; it may have moved on when it is used.
func (x *work) groupOf(handle string) (string, error) {
	var group string
	err := x.tx.QueryRow(x.ctx, "select conversation_group_id::text from sb_internal.endpoint where conversation_handle = $1::text::uuid",
		handle).Scan(&group)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", errGiveUp
	}
	return group, err
}

// anyVerb runs one lock-taking verb, chosen at random, on conversations of the service.
func (x *work) anyVerb(service int) error {
	w, c := x.w, x.c
	handle := c.pick(w.rnd, service)
	if handle == "" || c.alive(service) < 24 && w.chance(20) {
		_, err := x.begin(service, "")
		return err
	}
	switch n := w.rnd.IntN(100); {
	case n < 4:
		_, err := x.begin(service, ", related_conversation => $1::text::uuid", handle)
		return err
	case n < 7:
		group, err := x.groupOf(handle)
		if err != nil {
			return err
		}
		_, err = x.begin(service, ", related_conversation_group => $1::text::uuid", group)
		return err
	case n < 9:
		_, err := x.begin(service, fmt.Sprintf(", lifetime => '%d ms'", 50+w.rnd.IntN(2000)))
		return err
	case n < 35:
		return x.send(handle)
	case n < 40:
		return x.sendBatch(handle, 1+w.rnd.IntN(5))
	case n < 46:
		handles := []string{handle}
		for range 1 + w.rnd.IntN(4) {
			if another := c.pick(w.rnd, service); another != "" && !slices.Contains(handles, another) {
				handles = append(handles, another)
			}
		}
		return x.multicast(handles)
	case n < 56:
		other := c.pick(w.rnd, service)
		group, err := x.groupOf(orElse(other, handle))
		if err != nil {
			return err
		}
		return x.run("move", "select sb.move_conversation($1::text::uuid, $2::text::uuid)", handle, group)
	case n < 62:
		return x.run("timer", "select sb.begin_conversation_timer($1::text::uuid, $2::text::interval)", handle,
			fmt.Sprintf("%d ms", 1+w.rnd.IntN(300)))
	case n < 64:
		return x.run("cancel", "select sb.cancel_conversation_timer($1::text::uuid)", handle)
	case n < 74:
		_, err := x.receive(service, []string{"", ", 1", ", 3", ", 1, timeout => '20 ms'"}[w.rnd.IntN(4)])
		return err
	case n < 80:
		_, err := x.receive(service, ", $1::integer, for_conversation => $2::text::uuid",
			[]any{nil, 1, 2}[w.rnd.IntN(3)], handle)
		return err
	case n < 84:
		group, err := x.groupOf(handle)
		if err != nil {
			return err
		}
		_, err = x.receive(service, ", for_group => $1::text::uuid, timeout => $2::text::interval", group,
			[]any{nil, "0", "50 ms"}[w.rnd.IntN(3)])
		return err
	case n < 87:
		return x.run("group", "select sb.get_conversation_group('Queue' || $1::integer)", service)
	case n < 89:
		group, err := x.groupOf(handle)
		if err != nil {
			return err
		}
		return x.run("state", "select sb.set_state($1::text::uuid, jsonb_build_object('n', $2::bigint))", group, c.serial.Add(1))
	case n < 90:
		return x.run("deliver", "select sb.deliver()")
	case n < 91:
		return x.run("maintain", "select sb.maintain()")
	case n < 92:
		return x.run("statistics", `select (select count(*) from sb.queue_messages), (select count(*) from sb.queue_statistics),
			(select count(*) from sb.conversation_endpoints)`)
	default:
		return x.end(handle, endings[w.rnd.IntN(len(endings))])
	}
}

// oneVerb is the load of one verb in each transaction.
func oneVerb(w *worker) {
	w.transact(func(x *work) error {
		if err := x.anyVerb(w.rnd.IntN(2)); err != nil {
			return err
		}
		if w.chance(10) {
			return errGiveUp
		}
		return nil
	})
}

// mixture is the load of several verbs in each transaction, in savepoints or not, committed or not.
func mixture(w *worker) {
	w.transact(func(x *work) error {
		for range 1 + w.rnd.IntN(5) {
			verb := func() error { return x.anyVerb(w.rnd.IntN(2)) }
			if w.chance(50) {
				inner := verb
				verb = func() error {
					return x.part(func() error {
						if err := inner(); err != nil {
							return err
						}
						if w.chance(30) {
							return errGiveUp
						}
						return nil
					})
				}
			}
			if err := verb(); err != nil {
				return err
			}
		}
		if w.chance(20) {
			return errGiveUp
		}
		return nil
	})
}

// outline is the reader loop of the books on the service's queue: get a group, and until it is empty receive, work,
// send, end; then commit. When there is nothing it rolls back.
func outline(service int) func(w *worker) {
	return func(w *worker) {
		w.transact(func(x *work) error {
			x.verb = "group"
			var group *string
			if err := x.tx.QueryRow(x.ctx, "select sb.get_conversation_group('Queue' || $1::integer, '50 ms')::text", service).
				Scan(&group); err != nil {
				return err
			}
			if group == nil {
				return errGiveUp
			}
			for {
				got, err := x.receive(service, ", $1::integer, for_group => $2::text::uuid", 1+w.rnd.IntN(10), *group)
				if err != nil || len(got) == 0 {
					return err
				}
				for _, r := range got {
					switch {
					case r.typeID == errorType || r.typeID == endDialogType:
						if err := x.end(r.handle, ""); err != nil {
							return err
						}
						// The group may have gone with it.
						if another, err := x.groupOf(r.handle); err == nil && another != *group {
							return fmt.Errorf("conversation %s is in group %s", r.handle, another)
						}
					case r.typeID == timerType:
						if err := x.part(func() error { return x.send(r.handle) }); err != nil {
							return err
						}
					case w.chance(40):
						// An answer that crosses the peer's end is refused; the outline goes on.
						if err := x.part(func() error { return x.send(r.handle) }); err != nil {
							return err
						}
					}
				}
				var there bool
				if err := x.tx.QueryRow(x.ctx, "select exists (select from sb.conversation_group where conversation_group_id = $1::text::uuid)",
					*group).Scan(&there); err != nil || !there {
					return err
				}
			}
		})
	}
}

// settle decides the transactions whose COMMIT was not answered.
func (c *chaos) settle(s *pgtest.Session) {
	c.t.Helper()
	for _, d := range c.doubtful {
		pgtest.Eventually(c.t, 20*time.Second, func() bool {
			return s.Value("select pg_xact_status($1::text::xid8)", d.xid) != "in progress"
		})
		if s.Value("select pg_xact_status($1::text::xid8)", d.xid) == "committed" {
			c.apply(d.effects)
		}
	}
	c.doubtful = nil
}

// finish brings the load to its end: delivers and receives everything that is there, compares it with the ledger, ends
// every conversation, and looks for what is left over.
func (c *chaos) finish() {
	c.t.Helper()
	if c.t.Failed() {
		return
	}
	s := c.owner("finish")
	c.settle(s)
	s.Exec("select sb.alter_queue('Queue0', enabled => true), sb.alter_queue('Queue1', enabled => true)")
	s.Exec("select sb.deliver()")
	w := &worker{c: c, name: "finish", rnd: rand.New(rand.NewPCG(c.seed, 1<<32))}
	defer w.disconnect()
	c.mayBeOff = false
	c.kills = false // a commit in doubt from here on would be settled by nobody
	empty := 0
	// After a search that took long, as it may on a busy machine, the next one comes up to 10 s later.
	latest := time.Now().Add(time.Minute)
	isDrained := func() bool {
		return time.Now().After(latest) || s.Value("select exists (select from sb_internal.message)") == "f"
	}
	for (empty < 4 || !isDrained()) && !c.t.Failed() {
		for service := range 2 {
			empty++
			w.transact(func(x *work) error {
				got, err := x.receive(service, ", timeout => '150 ms'") // longer than the search for what is left behind
				if len(got) > 0 {
					empty = 0
				}
				return err
			})
		}
	}
	for _, row := range s.Query("select m.queue_id, m.message_type_id, m.conversation_handle, m.message_sequence_number, e.state, e.conversation_group_id = m.conversation_group_id from sb_internal.message as m left join sb_internal.endpoint as e using (conversation_handle) limit 20") {
		c.t.Logf("cannot be received: %s", row)
	}
	c.verify()

	// The sides that still exist, ended one after the other; what must wait is not there any more.
	for _, handle := range s.Query("select conversation_handle from sb.conversation_endpoints where state <> 'DO' order by 1") {
		s.Exec("select sb.end_conversation($1::text::uuid)", handle)
	}
	if waiting := s.Query("select * from sb_internal.transmission"); len(waiting) > 0 {
		c.t.Errorf("seed %d: in the transmission queue at the end: %q", c.seed, waiting)
	}
	s.Exec("select sb.maintain()")
	if left := leftOver(s); len(left) > 0 {
		c.t.Errorf("seed %d: left over: %v", c.seed, left)
		for _, table := range []string{
			"sb_internal.endpoint", "sb.conversation_group", "sb_internal.due", "sb_internal.send_counter",
			"sb_internal.receive_cursor", "sb_internal.message", "sb_internal.state",
		} {
			for _, row := range s.Query("select x::text from " + table + " as x limit 3") {
				c.t.Logf("%s: %s", table, row)
			}
		}
	}
	if locks := s.Query("select l.mode, l.pid from pg_locks as l where l.locktype = 'advisory' and l.classid = 8420 and l.database = (select oid from pg_database where datname = current_database())"); len(locks) > 0 {
		c.t.Errorf("seed %d: advisory locks left: %v", c.seed, locks)
	}
}

// verify compares what was received with what was sent: in each direction of each dialog the messages, in the order in
// which they were sent, with the numbers 0, 1, 2 …, none twice, and all of them unless the receiver has ended.
func (c *chaos) verify() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	delivered := 0
	for initiator, target := range c.dialogs {
		delivered += c.verifyDirection(initiator, target)
		delivered += c.verifyDirection(target, initiator)
	}
	known := 0
	for handle := range c.takes {
		if _, ok := c.peers[handle]; !ok {
			c.t.Errorf("seed %d: received on the unknown conversation %s", c.seed, handle)
		}
		known++
	}
	c.t.Logf("%d messages delivered on %d sides", delivered, known)
	if delivered == 0 {
		c.t.Errorf("seed %d: nothing was delivered", c.seed)
	}
}

func (c *chaos) verifyDirection(from, to string) int {
	c.t.Helper()
	fail := func(format string, args ...any) {
		c.t.Helper()
		c.t.Errorf("seed %d: %s → %s: %s", c.seed, from, to, fmt.Sprintf(format, args...))
	}
	slices.SortFunc(c.sends[from], func(a, b spoke) int { return cmp.Compare(a.stamp, b.stamp) })
	var bodies []string
	for _, s := range c.sends[from] {
		bodies = append(bodies, s.bodies...)
	}
	takes := c.takes[to]
	slices.SortFunc(takes, func(a, b heard) int {
		return cmp.Or(cmp.Compare(a.stamp, b.stamp), cmp.Compare(a.position, b.position))
	})
	ended, hasEnded := c.ends[to]
	fromEnded, fromHasEnded := c.ends[from]
	next, lastOrder, closed := 0, int64(-1), false
	for _, m := range takes {
		if hasEnded && m.stamp > ended.stamp {
			fail("received %q after the end", m.body)
		}
		if m.typeID == errorType || m.typeID == timerType {
			if m.sequence != -1 {
				fail("system message %d has sequence number %d", m.typeID, m.sequence)
			}
			continue
		}
		if closed {
			fail("received %q after EndDialog", m.body)
		}
		if m.sequence != int64(next) {
			fail("received number %d (type %d, %q), want %d", m.sequence, m.typeID, m.body, next)
			return next
		}
		if m.order <= lastOrder {
			fail("queuing order %d after %d", m.order, lastOrder)
		}
		lastOrder = m.order
		if m.typeID == endDialogType {
			if closed = true; next != len(bodies) {
				fail("EndDialog after %d messages of %d", next, len(bodies))
			}
			if !fromHasEnded || fromEnded.drops {
				fail("EndDialog without END")
			}
			continue
		}
		if next >= len(bodies) || bodies[next] != m.body {
			fail("message %d is %q, want one of %q", next, m.body, bodies[min(next, len(bodies)):])
			return next
		}
		next++
	}
	lossy := hasEnded || c.drops && (fromHasEnded && fromEnded.drops || c.timed[from])
	if !lossy && next != len(bodies) {
		fail("%d messages received of %d", next, len(bodies))
	}
	return next
}
