package model

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// The application that every run works on: two queues, services on both, one of them accepting nothing, and contracts
// whose types one side or both may send. Dialogs to nowhere wait in the transmission queue.
const (
	setUp = `
select sb.create_message_type('Note'), sb.create_message_type('Ask'), sb.create_message_type('Answer');
select sb.create_message_type('Other');
select sb.create_contract('Talk', sent_by_any => '{Note}');
select sb.create_contract('Order', sent_by_initiator => '{Ask}', sent_by_target => '{Answer}');
select sb.create_queue('QA', poison_message_handling => false), sb.create_queue('QB', poison_message_handling => false);
select sb.create_service('A', 'QA', '{Talk,Order}'), sb.create_service('B', 'QB', '{Talk,Order}');
select sb.create_service('C', 'QA', '{Talk}'), sb.create_service('D', 'QB');`
	// Poison handling counts without ever stopping a queue: that has tests of its own.
	setUpPoison = `
select sb.set_option('poison_message_threshold', '1000000');
select sb.alter_queue('QA', poison_message_handling => true), sb.alter_queue('QB', poison_message_handling => true);`
	setUpPriorities = `
select sb.create_broker_priority('orders', 'Order', priority_level => 8::smallint);
select sb.create_broker_priority('c', null, 'C', priority_level => 2::smallint);
select sb.create_broker_priority('answers', 'Order', 'A', priority_level => 6::smallint);`
)

var (
	queueOf   = map[string]string{"A": "QA", "B": "QB", "C": "QA", "D": "QB"}
	accepts   = map[string][]string{"A": {"Talk", "Order"}, "B": {"Talk", "Order"}, "C": {"Talk"}}
	contracts = map[string]map[string][2]bool{ // type: may the initiator, may the target send it
		"Talk":  {"Note": {true, true}},
		"Order": {"Ask": {true, false}, "Answer": {false, true}},
	}
	messageTypes = []string{"Note", "Ask", "Answer", "Other"}
)

// The states of an endpoint.
const (
	startedOutbound      = "SO"
	conversing           = "CO"
	disconnectedInbound  = "DI"
	disconnectedOutbound = "DO"
	failed               = "ER"
)

const (
	typeError = "Error"
	typeEnd   = "EndDialog"
	typeTimer = "DialogTimer"
)

// message is a message in a queue, in the transmission queue, or retained.
type message struct {
	seq    int64
	typ    string
	body   string // of an Error its code
	at     int64  // when it was put there, by the clock of the test
	order  int64  // of arrival, over all queues
	status int    // of a retained message
}

// side is one endpoint.
type side struct {
	handle, peer, group    string
	service, far, contract string
	initiator              bool
	priority               int
	state                  string // as the side itself wrote it
	lifetime               int64  // 0: none
	expires                bool   // the end of the lifetime is still to be received
	timer                  int64  // 0: none
	counts                 bool   // has a row that counts what it sends, since its first SEND
	sent                   int64
	waiting                []message // in the transmission queue
}

type group struct{ service, state string }

type queue struct{ on, retention bool }

// world is what a transaction sees. Slices in it are never changed, only replaced, so that a copy may share them.
type world struct {
	sides  map[string]side      // by handle
	groups map[string]group     // by id
	inbox  map[string][]message // by receiving handle, in order of sequence number; may outlive the side
	kept   map[string][]message // retained, by handle
	queues map[string]queue
	left   string // the group that the transaction has left empty last

	// The ledger, to judge the model itself by: what was said and heard on each handle, and how it was ended.
	spoke, heard map[string][]string
	ended        map[string]string
}

func newWorld() *world {
	return &world{
		sides: map[string]side{}, groups: map[string]group{}, inbox: map[string][]message{}, kept: map[string][]message{},
		queues: map[string]queue{"QA": {on: true}, "QB": {on: true}},
		spoke:  map[string][]string{}, heard: map[string][]string{}, ended: map[string]string{},
	}
}

func (w *world) clone() *world {
	return &world{
		maps.Clone(w.sides), maps.Clone(w.groups), maps.Clone(w.inbox), maps.Clone(w.kept), maps.Clone(w.queues), w.left,
		maps.Clone(w.spoke), maps.Clone(w.heard), maps.Clone(w.ended),
	}
}

// change rewrites a side that exists.
func (w *world) change(handle string, fn func(s *side)) {
	if s, ok := w.sides[handle]; ok {
		fn(&s)
		w.sides[handle] = s
	}
}

// put inserts a message into an inbox at its place.
func (w *world) put(handle string, msg message) {
	box := append(slices.Clip(w.inbox[handle]), msg)
	slices.SortStableFunc(box, func(a, b message) int { return int(a.seq - b.seq) })
	w.inbox[handle] = box
}

// control is the first Error (preferred) or EndDialog in the inbox, "" when there is none. An EndDialog that came after
// the lifetime does not count when inTime is asked for.
func (w *world) control(handle string, inTime bool) string {
	found := ""
	for _, m := range w.inbox[handle] {
		if m.typ == typeError {
			return typeError
		}
		if s := w.sides[handle]; m.typ == typeEnd && (!inTime || s.lifetime == 0 || m.at < s.lifetime) {
			found = typeEnd
		}
	}
	return found
}

// state is the state of a side as it holds at the time: what it wrote itself, what its peer left in the inbox, what the
// clock says (section 3.2 of the rules).
func (w *world) state(handle string, now int64) string {
	s := w.sides[handle]
	switch control := w.control(handle, true); {
	case s.state != conversing:
		return s.state
	case control == typeError:
		return failed
	case control == typeEnd:
		return disconnectedInbound
	case s.lifetime != 0 && s.lifetime <= now:
		return failed
	case s.initiator && s.sent == 0:
		return startedOutbound
	}
	return conversing
}

// ready is what a receive on the conversation returns, in order: DialogTimer, the Error of the lifetime, then by
// sequence number, an Error first.
func (w *world) ready(handle string, now int64) []message {
	s, ok := w.sides[handle]
	if !ok || s.state == disconnectedOutbound {
		return nil
	}
	var all []message
	if s.timer != 0 && s.timer <= now {
		all = append(all, message{seq: -1, typ: typeTimer, at: s.timer})
	}
	if s.expires && s.lifetime <= now && s.state == conversing && w.control(handle, true) == "" {
		all = append(all, message{seq: -1, typ: typeError, body: "-8489", at: s.lifetime})
	}
	return append(all, w.inbox[handle]...)
}

// lines renders the world as the views of the database show it, see viewSQL.
func (w *world) lines(now int64) []string {
	var all []string
	line := func(fields ...any) { all = append(all, words(fields...)) }
	orDash := func(n int64) any {
		if n == 0 {
			return "-"
		}
		return n
	}
	for h, s := range w.sides {
		id, sent := h, s.sent
		if !s.initiator {
			id = s.peer
		}
		if s.state == disconnectedOutbound {
			sent = 0 // by what still has to leave
			for _, m := range s.waiting {
				sent = max(sent, m.seq+1)
			}
		}
		line("side", h, id, s.initiator, s.group, s.service, s.far, s.contract, w.state(h, now), s.priority, sent,
			orDash(s.lifetime), orDash(s.timer))
		for _, m := range w.kept[h] {
			line("message", queueOf[s.service], m.status, s.priority, s.group, h, m.seq, s.service, s.contract, m.typ, m.body, m.at)
		}
		for _, m := range w.ready(h, now) {
			line("message", queueOf[s.service], 1, s.priority, s.group, h, m.seq, s.service, s.contract, m.typ, m.body, m.at)
		}
		for _, m := range s.waiting {
			line("waiting", h, s.far, s.service, s.contract, m.seq, m.typ, m.body, m.at, s.priority, w.transmissionStatus(s, now))
		}
	}
	for id, g := range w.groups {
		line("group", id, g.service)
		if g.state != "" {
			line("state", id, g.state)
		}
	}
	for name, q := range w.queues {
		line("queue", name, q.on, q.retention)
	}
	slices.Sort(all)
	return all
}

// words joins values by one space each; empty ones leave none.
func words(values ...any) string {
	return strings.Join(strings.Fields(fmt.Sprintln(values...)), " ")
}

// transmissionStatus says why the side's messages wait.
func (w *world) transmissionStatus(s side, now int64) string {
	if len(s.waiting) == 0 {
		return "none"
	}
	switch w.state(s.handle, now) {
	case failed:
		return "error"
	case disconnectedInbound:
		return "ended"
	}
	switch q, ok := queueOf[s.far]; {
	case !ok:
		return "missing"
	case !w.queues[q].on:
		return "off"
	}
	return "none"
}

// entry is one thing that a transaction has done: an effect on the world, a lock, or a savepoint.
type entry struct {
	effect func(w *world)
	lock   string
	shared bool // the weaker of the two modes of a table lock; row locks are all the same
	save   bool
}

// session is one of the concurrent users. What it did since the last commit is a list, so that a rollback, whole or to
// a savepoint, cuts the list, locks included, and COMMIT applies it to what everybody sees. That this is right in READ
// COMMITTED is itself a claim under test: what two open transactions do to the same row is kept apart by locks.
type session struct {
	name    string
	entries []entry
	open    bool // in a transaction block
	failed  bool // that an error has doomed
	call    *call

	transactions int // how many it has ended
	partial      int // how often a part of this one was rolled back
}

// saves is how many savepoints the transaction has.
func (s *session) saves() int {
	n := 0
	for _, e := range s.entries {
		if e.save {
			n++
		}
	}
	return n
}

// lastSave is the index behind the innermost savepoint, 0 without one.
func (s *session) lastSave() int {
	for i := len(s.entries) - 1; i >= 0; i-- {
		if s.entries[i].save {
			return i + 1
		}
	}
	return 0
}

// model is the whole: the committed world, the sessions, the clock.
type model struct {
	config    config
	committed *world
	sessions  []*session
	now       int64
	orders    int64
	searched  map[string]int64 // by queue: when a receive last had to search it
}

func newModel(cfg config, sessions int) *model {
	m := &model{config: cfg, committed: newWorld(), searched: map[string]int64{}}
	for i := range sessions {
		m.sessions = append(m.sessions, &session{name: fmt.Sprintf("s%d", i+1)})
	}
	return m
}

// view is what a statement of the session sees: what is committed, and its own.
func (m *model) view(s *session) *world {
	w := m.committed.clone()
	for _, e := range s.entries {
		if e.effect != nil {
			e.effect(w)
		}
	}
	return w
}

func (m *model) commit(s *session) {
	if !s.failed {
		m.committed = m.view(s)
		m.committed.left = ""
	}
	m.rollback(s)
}

func (m *model) rollback(s *session) {
	s.entries, s.open, s.failed, s.partial = nil, false, false, 0
	s.transactions++
}

// fail is what an error does: everything since the last savepoint is undone at once, its locks are given back, and the
// rest of the transaction is doomed.
func (m *model) fail(s *session) {
	s.entries = s.entries[:s.lastSave()]
	s.failed = s.open
	s.partial++
	if len(s.entries) == 0 {
		// Not in a savepoint: it has ended, for all who wait for it, and only has to say so still.
		s.transactions++
	}
}

// rivals are the other sessions that hold a lock which excludes this one.
func (m *model) rivals(s *session, lock string, shared bool) []*session {
	var all []*session
	for _, o := range m.sessions {
		if o != s && slices.ContainsFunc(o.entries, func(e entry) bool { return e.lock == lock && (!e.shared || !shared) }) {
			all = append(all, o)
		}
	}
	return all
}

// priority is the priority of an endpoint at its creation.
func (m *model) priority(contract, local string) int {
	switch {
	case !m.config.priorities:
	case contract == "Order" && local == "A":
		return 6
	case contract == "Order":
		return 8
	case local == "C":
		return 2
	}
	return 5
}

// pause is why a call stops on its way.
type pause struct {
	by     []*session // it waits for these
	polite bool       // it waits by trying again and again, holding nothing meanwhile
	until  int64      // the clock must not reach this while it waits; 0: it may
	answer bool       // it is done but for a choice that is the database's: it wants to see the answer
	unsure string     // the model cannot say what happens next
}

// call is a statement on its way through the model: a coroutine that stops wherever the statement would wait.
type call struct {
	*model
	s      *session
	step   step
	mark   int // length of the session's entries before the call
	yield  func(pause) bool
	next   func() (pause, bool)
	stop   func()
	paused pause

	code string   // the SQLSTATE it must end with
	rows []string // what it must return, where that is not checked by the call itself
	got  []string // the answer of the database
	bad  string   // what is wrong with that
}

// abandoned ends a coroutine whose statement was killed or never begun.
type abandoned struct{}

// start begins a call; advance runs it to its first pause.
func (m *model) start(s *session, st step, resolve func(c *call)) *call {
	c := &call{model: m, s: s, step: st, mark: len(s.entries)}
	resolve(c)
	c.next, c.stop = iter.Pull(func(yield func(pause) bool) {
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(abandoned); !ok {
					panic(p)
				}
			}
		}()
		c.yield = yield
		c.code = verbs[st.verb].model(c)
	})
	return c
}

// advance runs the call on; it reports whether it has come to its end.
func (c *call) advance() bool {
	p, more := c.next()
	c.paused = p
	return !more
}

// cancel takes back a call that was only thought of.
func (c *call) cancel() {
	c.stop()
	c.s.entries = c.s.entries[:c.mark]
}

func (c *call) pause(p pause) {
	if !c.yield(p) {
		panic(abandoned{})
	}
}

func (c *call) view() *world { return c.model.view(c.s) }

func (c *call) do(effect func(w *world)) { c.s.entries = append(c.s.entries, entry{effect: effect}) }

// back gives back everything since the mark.
func (c *call) back(mark int) { c.s.entries = c.s.entries[:mark] }

// hold takes a lock that nobody else can have.
func (c *call) hold(lock string) { c.s.entries = append(c.s.entries, entry{lock: lock}) }

func (c *call) holdTable(shared bool) {
	c.s.entries = append(c.s.entries, entry{lock: transmissionTable, shared: shared})
}

// lock takes a lock, waiting for it.
func (c *call) lock(lock string) {
	for by := c.rivals(c.s, lock, false); len(by) > 0; by = c.rivals(c.s, lock, false) {
		c.pause(pause{by: by})
	}
	c.hold(lock)
}

// writeTransmission is what every statement that writes to the transmission queue does first: whoever switches a queue
// on keeps writers out until he commits, so that nothing is stranded.
func (c *call) writeTransmission() {
	for by := c.rivals(c.s, transmissionTable, true); len(by) > 0; by = c.rivals(c.s, transmissionTable, true) {
		c.pause(pause{by: by})
	}
	c.holdTable(true)
}

// The locks: the row of a group, of an endpoint, of a counter; and of everybody.
const (
	transmissionTable = "transmission"
	catalogLock       = "catalog"
)

func groupLock(id string) string        { return "group " + id }
func endpointLock(handle string) string { return "endpoint " + handle }
func counterLock(handle string) string  { return "counter " + handle }
