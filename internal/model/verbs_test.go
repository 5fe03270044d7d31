package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// verb is a statement: its SQL, and what the model says about it. The latter returns the SQLSTATE.
type verb struct {
	sql   func(c *call) (string, []any)
	model func(c *call) string
}

var verbs map[string]verb

// receiveColumns shows a message as verifyBlock wants it.
const receiveColumns = `concat_ws(' ', m.conversation_group_id, m.conversation_handle, m.status, m.priority, m.message_sequence_number,
  m.service_name, m.service_contract_name, public.model_message(m.message_type_name, m.message_body), public.us(m.message_enqueue_time),
  m.queuing_order)`

func init() {
	verbs = map[string]verb{
		"begin_dialog": {func(c *call) (string, []any) {
			return "select sb.begin_dialog($1, $2, $3, null, $4::text::uuid, $5::text::uuid, $6::text::interval)", []any{
				c.step.get("from"), c.step.get("to"), c.step.get("on"), orNull(c.step.get("with")), orNull(c.step.get("group")),
				orNull(c.step.get("lifetime")),
			}
		}, (*call).beginDialog},
		"send": {func(c *call) (string, []any) {
			bodies := c.bodies()
			if len(bodies) == 1 {
				return "select sb.send($1::text::uuid, $2, $3::text)", []any{c.step.get("on"), c.step.get("type"), bodies[0]}
			}
			raw := make([][]byte, len(bodies))
			for i, body := range bodies {
				raw[i] = []byte(body)
			}
			return "select sb.send_batch($1::text::uuid, $2, $3)", []any{c.step.get("on"), c.step.get("type"), raw}
		}, func(c *call) string {
			return c.send(c.step.get("on"), c.step.get("type"), c.bodies())
		}},
		"multicast": {func(c *call) (string, []any) {
			return "select sb.multicast($1::text[]::uuid[], $2, $3)", []any{c.step.list("on"), c.step.get("type"), []byte(c.bodies()[0])}
		}, (*call).multicast},
		"receive": {func(c *call) (string, []any) {
			timeout := any(nil)
			if c.step.get("nowait") != "" {
				timeout = "0"
			}
			return "select " + receiveColumns + " from sb.receive($1, $2::text::integer, $3::text::uuid, $4::text::uuid, $5::text::interval) as m",
				[]any{c.step.get("from"), orNull(c.step.get("top")), orNull(c.step.get("for")), orNull(c.step.get("group")), timeout}
		}, (*call).receive},
		"get_conversation_group": {func(c *call) (string, []any) {
			return "select sb.get_conversation_group($1)", []any{c.step.get("from")}
		}, (*call).getConversationGroup},
		"move": {func(c *call) (string, []any) {
			return "select sb.move_conversation($1::text::uuid, $2::text::uuid)", []any{c.step.get("on"), c.step.get("group")}
		}, (*call).move},
		"end": {func(c *call) (string, []any) {
			return "select sb.end_conversation($1::text::uuid, $2::text::integer, $3, $4)", []any{
				c.step.get("on"), orNull(c.step.get("code")), orNull(c.step.get("text")), c.step.get("cleanup") != "",
			}
		}, (*call).end},
		"timer": {func(c *call) (string, []any) {
			return "select sb.begin_conversation_timer($1::text::uuid, $2::text::interval)", []any{c.step.get("on"), c.step.get("in")}
		}, (*call).timer},
		"cancel": {func(c *call) (string, []any) {
			return "select sb.cancel_conversation_timer($1::text::uuid)", []any{c.step.get("on")}
		}, (*call).cancelTimer},
		"set_state": {func(c *call) (string, []any) {
			return "select sb.set_state($1::text::uuid, $2::text::jsonb)", []any{c.step.get("group"), orNull(c.step.get("state"))}
		}, (*call).setState},
		"get_state": {func(c *call) (string, []any) {
			return "select coalesce(sb.get_state($1::text::uuid)::text, '')", []any{c.step.get("group")}
		}, func(c *call) string {
			g, ok := c.view().groups[c.step.get("group")]
			if !ok {
				return "S8436"
			}
			c.rows = []string{g.state}
			return ""
		}},
		"alter_queue": {func(c *call) (string, []any) {
			return "select sb.alter_queue($1, enabled => $2::text::boolean, retention => $3::text::boolean)", []any{
				c.step.get("name"), orNull(c.step.get("enabled")), orNull(c.step.get("retention")),
			}
		}, (*call).alterQueue},
		"deliver": {func(c *call) (string, []any) {
			return "select from sb.deliver($1)", []any{orNull(c.step.get("to"))}
		}, func(c *call) string {
			c.deliver(c.step.get("to"))
			return ""
		}},
		"maintain": {func(c *call) (string, []any) {
			return "select from sb.maintain()", nil
		}, func(c *call) string {
			c.deliver("")
			return ""
		}},
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// bodies are the bodies that a sending step sends, none of which occurs twice.
func (c *call) bodies() []string {
	n := max(1, c.step.number("count"))
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s/%d", c.step.get("body"), i)
	}
	return all
}

// beginDialog.
func (c *call) beginDialog() string {
	from, to, contract := c.step.get("from"), c.step.get("to"), c.step.get("on")
	related, wanted := c.step.get("with"), c.step.get("group")
	lifetime := int64(0)
	if related != "" && wanted != "" {
		return "22023"
	}
	if text := c.step.get("lifetime"); text != "" {
		d := c.step.duration("lifetime")
		if d <= 0 {
			return "S8411"
		}
		lifetime = c.now + d
	}
	if queueOf[from] == "" {
		return "S8423"
	}
	if contracts[contract] == nil {
		return "S8425"
	}
	switch {
	case related != "":
		if wanted = c.lockGroupOf(related); wanted == "" {
			return "S8426"
		}
		if c.view().sides[related].service != from {
			return "S9610"
		}
	case wanted != "":
		// Also waits for a rival that makes a group with the same id.
		c.lock(groupLock(wanted))
		if g, ok := c.view().groups[wanted]; ok && g.service != from {
			return "S9610"
		}
	}
	c.pause(pause{answer: true})
	if len(c.got) != 1 {
		c.bad = "no handle"
		return ""
	}
	handle, peer, _ := strings.Cut(c.got[0], " ")
	if wanted == "" {
		wanted = handle
		c.hold(groupLock(wanted))
	}
	c.hold(endpointLock(handle))
	c.do(func(w *world) {
		if _, ok := w.groups[wanted]; !ok {
			w.groups[wanted] = group{service: from}
		}
		w.sides[handle] = side{
			handle: handle, peer: peer, group: wanted, service: from, far: to, contract: contract, initiator: true,
			priority: c.priority(contract, from), state: conversing, lifetime: lifetime, expires: lifetime != 0,
		}
	})
	return ""
}

// send. It locks the counter of the side, which comes with the first SEND; that locks the endpoint.
func (c *call) send(h, typ string, bodies []string) string {
	for {
		s, ok := c.view().sides[h]
		if !ok {
			return "S8426"
		}
		mark := len(c.s.entries)
		if s.counts {
			c.lock(counterLock(h))
			if now, ok := c.view().sides[h]; ok && now.counts {
				break
			}
			c.back(mark) // ended meanwhile
			continue
		}
		c.lock(endpointLock(h))
		if s, ok = c.view().sides[h]; !ok {
			return "S8426"
		}
		if !s.counts {
			c.hold(counterLock(h))
			c.do(func(w *world) { w.change(h, func(s *side) { s.counts = true }) })
		}
	}
	w := c.view()
	s := w.sides[h]
	n := int64(len(bodies))
	first := s.sent
	own := w.queues[queueOf[s.service]]
	if s.state != conversing || w.control(h, false) != "" || s.lifetime != 0 && s.lifetime <= c.now {
		return "S8429"
	}
	if may, ok := contracts[s.contract][typ]; !ok {
		if slices.Contains(messageTypes, typ) {
			return "S8431"
		}
		return "S8428"
	} else if s.initiator && !may[0] {
		return "S8432"
	} else if !s.initiator && !may[1] {
		return "S8434"
	}
	if own.retention && !own.on {
		return "S9618"
	}
	c.do(func(w *world) { w.change(h, func(s *side) { s.sent += n }) })

	peer, ok := w.sides[s.peer]
	direct := ok && w.queues[queueOf[peer.service]].on
	if len(s.waiting) > 0 {
		direct = false
	} else if !ok {
		if first > 0 || !s.initiator {
			c.fault(h, "-8462")
			return ""
		}
		switch c.createTarget(h) {
		case "error":
			return ""
		case "created":
			direct = true
		}
	}
	now := c.now
	messages := make([]message, n)
	for i := range messages {
		c.orders++
		messages[i] = message{seq: first + int64(i), typ: typ, body: bodies[i], at: now, order: c.orders}
	}
	if own.retention {
		copies := withStatus(messages, 3)
		c.do(func(w *world) { w.kept[h] = slices.Concat(w.kept[h], copies) })
	}
	c.do(func(w *world) { w.spoke[h] = slices.Concat(w.spoke[h], bodies) })
	switch {
	case !direct:
		c.writeTransmission()
		now = c.now // it may have waited
		for i := range messages {
			messages[i].at = now
		}
		c.do(func(w *world) {
			w.change(h, func(s *side) { s.waiting = slices.Concat(s.waiting, messages) })
		})
		c.lookAgain(h, false)
	case peer.state == disconnectedOutbound:
		// The peer has ended, and its EndDialog has not come here yet: discarded.
	default:
		to := s.peer
		c.do(func(w *world) {
			for _, m := range messages {
				w.put(to, m)
			}
		})
	}
	return ""
}

func withStatus(messages []message, status int) []message {
	all := slices.Clone(messages)
	for i := range all {
		all[i].status = status
	}
	return all
}

// fault puts an Error of the broker into the side's own queue.
func (c *call) fault(h, code string) {
	c.orders++
	msg := message{seq: -1, typ: typeError, body: code, at: c.now, order: c.orders}
	c.do(func(w *world) {
		if s, ok := w.sides[h]; ok && s.state != disconnectedOutbound {
			w.put(h, msg)
		}
	})
}

// createTarget is the first delivery of a dialog: created, wait, or error (R-164, R-244, -8408).
func (c *call) createTarget(h string) string {
	w := c.view()
	s := w.sides[h]
	q, ok := queueOf[s.far]
	if !ok || !w.queues[q].on {
		return "wait"
	}
	if !slices.Contains(accepts[s.far], s.contract) {
		c.fault(h, "-8408")
		return "error"
	}
	c.hold(groupLock(s.peer))
	c.hold(endpointLock(s.peer))
	c.do(func(w *world) {
		w.groups[s.peer] = group{service: s.far}
		w.sides[s.peer] = side{
			handle: s.peer, peer: h, group: s.peer, service: s.far, far: s.service, contract: s.contract,
			priority: c.priority(s.contract, s.far), state: conversing, lifetime: s.lifetime, expires: s.lifetime != 0,
		}
	})
	return "created"
}

// lookAgain follows a message into the transmission queue: the way may have been opened meanwhile.
func (c *call) lookAgain(h string, ending bool) {
	w := c.view()
	if q, ok := queueOf[w.sides[h].far]; ok && w.queues[q].on {
		c.deliverConversation(h, ending)
	}
}

// deliverConversation moves on, in order, what the side has in the transmission queue.
func (c *call) deliverConversation(h string, ending bool) {
	w := c.view()
	s := w.sides[h]
	if !ending && slices.Contains([]string{disconnectedInbound, failed}, w.state(h, c.now)) {
		return
	}
	outcome := ""
	for last := int64(-2); ; {
		w = c.view()
		i := slices.IndexFunc(w.sides[h].waiting, func(m message) bool { return m.seq > last })
		if i < 0 {
			break
		}
		msg := w.sides[h].waiting[i]
		last = msg.seq
		peer, ok := w.sides[s.peer]
		if !ok && s.initiator && msg.seq == 0 {
			if outcome = c.createTarget(h); outcome == "wait" || outcome == "error" && !ending {
				break
			}
			peer, ok = c.view().sides[s.peer]
		}
		if ok && peer.state != disconnectedOutbound {
			if !w.queues[queueOf[peer.service]].on {
				break
			}
			c.orders++
			arrived := msg
			arrived.at, arrived.order = c.now, c.orders
			c.do(func(w *world) { w.put(s.peer, arrived) })
		} else if !ok && !ending && s.state == conversing && outcome == "" && w.control(h, false) == "" {
			c.fault(h, "-8462")
		}
		c.writeTransmission()
		c.do(func(w *world) {
			w.change(h, func(s *side) {
				s.waiting = slices.DeleteFunc(slices.Clone(s.waiting), func(m message) bool { return m.seq == msg.seq })
			})
		})
	}
	if ending && len(c.view().sides[h].waiting) == 0 {
		c.do(func(w *world) { delete(w.sides, h) })
	}
}

// deliver moves on what can be moved on to services on the queue ("": any); it passes by whoever is busy.
func (c *call) deliver(queue string) {
	w := c.view()
	var handles []string
	for h, s := range w.sides {
		if q, ok := queueOf[s.far]; ok && len(s.waiting) > 0 && w.queues[q].on && (queue == "" || q == queue) {
			handles = append(handles, h)
		}
	}
	slices.Sort(handles)
	for _, h := range handles {
		if len(c.rivals(c.s, endpointLock(h), false)) > 0 {
			continue
		}
		s := c.view().sides[h]
		c.hold(endpointLock(h))
		isFree := len(c.rivals(c.s, counterLock(h), false)) == 0
		if s.counts && isFree {
			c.hold(counterLock(h))
		}
		if isFree || s.state == disconnectedOutbound {
			c.deliverConversation(h, s.state == disconnectedOutbound)
		}
	}
}

// multicast: all or none.
func (c *call) multicast() string {
	handles := slices.Clone(c.step.list("on"))
	slices.Sort(handles)
	started := c.now
	for {
		var by []*session
		w := c.view()
		for _, h := range handles {
			if s, ok := w.sides[h]; ok && !s.counts {
				by = append(by, c.rivals(c.s, endpointLock(h), false)...)
			} else if ok {
				by = append(by, c.rivals(c.s, counterLock(h), false)...)
			}
		}
		if len(by) == 0 {
			for _, h := range handles {
				if s, ok := w.sides[h]; ok && !s.counts {
					c.hold(endpointLock(h))
				} else if ok {
					c.hold(counterLock(h))
				}
			}
			break
		}
		c.pause(pause{by: by, polite: true, until: started + 3_000_000})
	}
	previous := ""
	for _, h := range handles {
		if h == previous {
			return "SB001"
		}
		previous = h
		if code := c.send(h, c.step.get("type"), c.bodies()[:1]); code != "" {
			return code
		}
	}
	return ""
}

// lockGroupOf locks the group that the conversation is in, "" when it is gone; not one that it has left meanwhile.
func (c *call) lockGroupOf(h string) string {
	for {
		s, ok := c.view().sides[h]
		if !ok || s.state == disconnectedOutbound {
			return ""
		}
		mark := len(c.s.entries)
		c.lock(groupLock(s.group))
		if now, ok := c.view().sides[h]; ok && now.group == s.group && now.state != disconnectedOutbound {
			return s.group
		}
		c.back(mark)
	}
}

// end.
func (c *call) end() string {
	h := c.step.get("on")
	code, text, cleanup := c.step.get("code"), c.step.get("text"), c.step.get("cleanup") != ""
	switch {
	case cleanup && (code != "" || text != ""):
		return "22023"
	case (code == "") != (text == ""):
		return "S8424"
	case code != "" && c.step.number("code") <= 0:
		return "S8419"
	}
	c.lockGroupOf(h)
	if _, ok := c.view().sides[h]; ok {
		c.lock(endpointLock(h))
	}
	s, ok := c.view().sides[h]
	if !ok {
		return "S8426"
	}
	if s.counts {
		c.lock(counterLock(h))
	}
	w := c.view()
	s = w.sides[h]
	state := w.state(h, c.now)
	how := "plain"
	if cleanup || code != "" || state != conversing && state != startedOutbound {
		how = "other"
	}
	c.do(func(w *world) { w.ended[h] = how })
	switch {
	case cleanup:
		c.forget(h, false)
		return ""
	case state == disconnectedOutbound:
		return "S8427"
	case state != conversing && state != startedOutbound:
		c.forget(h, false)
		return ""
	}
	if code != "" {
		c.writeTransmission()
		c.do(func(w *world) { w.change(h, func(s *side) { s.waiting = nil }) })
	} else if len(s.waiting) > 0 {
		c.deliverConversation(h, false)
	}
	w = c.view()
	s = w.sides[h]
	peer, ok := w.sides[s.peer]
	ok = ok && peer.state != disconnectedOutbound
	c.orders++
	last := message{seq: s.sent, typ: typeEnd, at: c.now, order: c.orders}
	if code != "" {
		last = message{seq: -1, typ: typeError, body: code, at: c.now, order: c.orders}
	}
	if len(s.waiting) > 0 || ok && !w.queues[queueOf[peer.service]].on {
		c.writeTransmission()
		last.at = c.now
		c.do(func(w *world) { w.change(h, func(s *side) { s.waiting = slices.Concat(s.waiting, []message{last}) }) })
		c.forget(h, true)
		c.lookAgain(h, true)
		return ""
	}
	if ok {
		to := s.peer
		c.do(func(w *world) { w.put(to, last) })
	}
	c.forget(h, false)
	return ""
}

// forget removes the side with everything it owns, and its group with the last conversation; a side that has
// something in the transmission queue stays, in DO.
func (c *call) forget(h string, keep bool) {
	s := c.view().sides[h]
	if !keep {
		c.writeTransmission()
	}
	c.do(func(w *world) {
		delete(w.inbox, h)
		delete(w.kept, h)
		if keep {
			w.change(h, func(s *side) {
				s.state, s.timer, s.expires, s.counts = disconnectedOutbound, 0, false, false
			})
		} else {
			delete(w.sides, h)
		}
		if s.state != disconnectedOutbound {
			w.leave(s.group)
		}
	})
}

// leave removes a group without conversations.
func (w *world) leave(id string) {
	for _, s := range w.sides {
		if s.group == id && s.state != disconnectedOutbound {
			return
		}
	}
	delete(w.groups, id)
	w.left = id
}

// move. Both groups are locked, in the order of their ids.
func (c *call) move() string {
	h, to := c.step.get("on"), c.step.get("group")
	var s side
	for {
		w := c.view()
		var ok bool
		if s, ok = w.sides[h]; !ok {
			return "S8426"
		}
		if s.state == disconnectedOutbound {
			return "S8438"
		}
		mark := len(c.s.entries)
		both := []string{s.group, to}
		slices.Sort(both)
		for _, id := range slices.Compact(both) {
			if _, ok := w.groups[id]; ok {
				c.lock(groupLock(id))
			}
		}
		if now, ok := c.view().sides[h]; ok && now.group == s.group && now.state != disconnectedOutbound {
			break
		}
		c.back(mark)
	}
	if s.group == to {
		return ""
	}
	g, ok := c.view().groups[to]
	if !ok {
		return "S8436"
	}
	if g.service != s.service {
		return "S8439"
	}
	c.lock(endpointLock(h))
	if c.view().sides[h].counts {
		c.lock(counterLock(h))
	}
	c.do(func(w *world) {
		w.change(h, func(s *side) { s.group = to })
		w.leave(s.group)
	})
	return ""
}

// timer.
func (c *call) timer() string {
	h, d := c.step.get("on"), c.step.duration("in")
	if d <= 0 {
		return "22023"
	}
	c.lockGroupOf(h)
	s, ok := c.view().sides[h]
	due := c.now + d
	switch {
	case !ok:
		return "S8426"
	case s.state == disconnectedOutbound:
		return "S8458"
	case s.lifetime != 0 && due > s.lifetime:
		return "S8410"
	}
	c.do(func(w *world) { w.change(h, func(s *side) { s.timer = due }) })
	return ""
}

func (c *call) cancelTimer() string {
	h := c.step.get("on")
	c.lockGroupOf(h)
	s, ok := c.view().sides[h]
	switch {
	case !ok:
		return "S8426"
	case s.state == disconnectedOutbound:
		return "S8458"
	}
	c.do(func(w *world) { w.change(h, func(s *side) { s.timer = 0 }) })
	return ""
}

// setState locks the group.
func (c *call) setState() string {
	id, state := c.step.get("group"), c.step.get("state")
	if _, ok := c.view().groups[id]; ok {
		c.lock(groupLock(id))
	}
	if _, ok := c.view().groups[id]; !ok {
		return "S8436"
	}
	c.do(func(w *world) {
		if g, ok := w.groups[id]; ok {
			g.state = state
			w.groups[id] = g
		}
	})
	return ""
}

// alterQueue: who switches a queue on delivers what waits for it, once nobody is left who may put more there unseen; for
// 5 s, then without that.
func (c *call) alterQueue() string {
	name := c.step.get("name")
	c.lock(catalogLock)
	enabled, retention := c.step.get("enabled"), c.step.get("retention")
	if enabled == "" && retention == "" {
		return "22023"
	}
	c.do(func(w *world) {
		q := w.queues[name]
		if enabled != "" {
			q.on = enabled == "true"
		}
		if retention != "" {
			q.retention = retention == "true"
		}
		w.queues[name] = q
	})
	if enabled != "true" {
		return ""
	}
	for giveUp := c.now + 5_000_000; ; {
		by := c.rivals(c.s, transmissionTable, false)
		if len(by) == 0 {
			c.holdTable(false)
			break
		}
		if c.now >= giveUp {
			break
		}
		c.pause(pause{by: by, polite: true})
	}
	c.deliver(name)
	return ""
}

// claimable are the sides on the queue that have something to receive and whose group is free.
func (c *call) claimable(w *world, queue string) []side {
	var all []side
	for h, s := range w.sides {
		if queueOf[s.service] == queue && len(w.ready(h, c.now)) > 0 && len(c.rivals(c.s, groupLock(s.group), false)) == 0 {
			all = append(all, s)
		}
	}
	return all
}

// groupsToTake are the groups that a receive which names none may take. Which of them is settled only after a full
// search of the queue, which comes at most every 100 ms: the highest priority, and there the oldest message.
func (c *call) groupsToTake(w *world, queue string) []string {
	sides := c.claimable(w, queue)
	last, ok := c.searched[queue]
	isFull := !ok || c.now >= last+101_000
	c.searched[queue] = c.now
	if isFull && len(sides) > 0 {
		top := slices.MaxFunc(sides, func(a, b side) int { return a.priority - b.priority }).priority
		sides = slices.DeleteFunc(sides, func(s side) bool { return s.priority < top })
		if oldest, ok := c.oldest(w, queue, top, sides); ok {
			return []string{oldest}
		}
	}
	var ids []string
	for _, s := range sides {
		ids = append(ids, s.group)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// oldest is the group of the oldest message of the sides. With timers and lifetimes due among them it is not said who
// comes first, nor with so many messages that the search gives up walking them.
func (c *call) oldest(w *world, queue string, priority int, sides []side) (string, bool) {
	total := 0
	for h, s := range w.sides {
		if queueOf[s.service] == queue && s.priority == priority {
			total += len(w.inbox[h])
			if s.timer != 0 && s.timer <= c.now || s.expires && s.lifetime <= c.now {
				return "", false
			}
		}
	}
	if total > 250 {
		return "", false
	}
	best, found := int64(0), ""
	for _, s := range sides {
		for _, m := range w.inbox[s.handle] {
			if found == "" || m.order < best {
				best, found = m.order, s.group
			}
		}
	}
	return found, found != ""
}

// getConversationGroup.
func (c *call) getConversationGroup() string {
	queue := c.step.get("from")
	w := c.view()
	if !w.queues[queue].on {
		return "S9617"
	}
	groups := c.groupsToTake(w, queue)
	c.pause(pause{answer: true})
	got := ""
	if len(c.got) == 1 && c.got[0] != "NULL" {
		got = c.got[0]
	}
	if got == "" && len(groups) == 0 {
		return ""
	}
	if !slices.Contains(groups, got) {
		c.bad = fmt.Sprintf("got group %q, want one of %q", got, groups)
		return ""
	}
	c.hold(groupLock(got))
	return ""
}

// receive.
func (c *call) receive() string {
	queue, conversation, id := c.step.get("from"), c.step.get("for"), c.step.get("group")
	top := int64(1) << 40
	if c.step.get("top") != "" {
		top = int64(c.step.number("top"))
	}
	nowait := c.step.get("nowait") != ""
	if conversation != "" && id != "" || top <= 0 {
		return "22023"
	}
	w := c.view()
	if !w.queues[queue].on {
		return "S9617"
	}
	groups := []string{id}
	if conversation != "" || id != "" {
		for {
			w = c.view()
			if !w.queues[queue].on {
				return "S9617"
			}
			if conversation != "" {
				s, ok := w.sides[conversation]
				if !ok || s.state == disconnectedOutbound || queueOf[s.service] != queue {
					return "S8426"
				}
				groups = []string{s.group}
			} else if g, ok := w.groups[id]; !ok || queueOf[g.service] != queue {
				if !nowait && id == w.left {
					c.rows = []string{} // ended on the way: found empty, as the outline's loop needs it
					return ""
				}
				return "S8436"
			}
			if nowait && len(c.rivals(c.s, groupLock(groups[0]), false)) > 0 {
				c.rows = []string{} // R-178, with a time-out of 0
				return ""
			}
			mark := len(c.s.entries)
			c.lock(groupLock(groups[0]))
			w = c.view()
			s := w.sides[conversation]
			_, exists := w.groups[groups[0]]
			if w.queues[queue].on && exists && (conversation == "" || s.group == groups[0] && s.state != disconnectedOutbound) {
				break
			}
			c.back(mark)
		}
	} else if groups = c.groupsToTake(w, queue); len(groups) == 0 {
		c.rows = []string{}
		return ""
	}

	// Handing out an end writes the endpoint, whose row a first SEND or a delivery may hold.
	for _, h := range c.sidesToTake(w, groups, conversation) {
		writes, expires := false, false
		for i, m := range w.ready(h, c.now) {
			if int64(i) < top && (m.typ == typeError || m.typ == typeEnd) {
				writes, expires = true, expires || m.seq == -1 && m.order == 0
			}
		}
		if !writes || len(c.rivals(c.s, endpointLock(h), false)) == 0 {
			continue
		}
		if conversation == "" || expires {
			c.pause(pause{unsure: "receive of an end whose endpoint is locked"})
		}
		c.lock(endpointLock(h))
	}
	c.pause(pause{answer: true})
	c.take(w, groups, conversation, top)
	return ""
}

func (c *call) sidesToTake(w *world, groups []string, conversation string) []string {
	if conversation != "" {
		return []string{conversation}
	}
	var handles []string
	for h, s := range w.sides {
		if slices.Contains(groups, s.group) {
			handles = append(handles, h)
		}
	}
	return handles
}

// take checks what was received against what could be, and takes it: messages of one group, conversations by
// priority and one whole after the other, each in its order, cut off after top.
func (c *call) take(w *world, groups []string, conversation string, top int64) {
	rows := c.got
	if len(rows) > 0 {
		id, _, _ := strings.Cut(rows[0], " ")
		if !slices.Contains(groups, id) {
			c.bad = fmt.Sprintf("received from group %s, want one of %q", id, groups)
			return
		}
		groups = []string{id}
		c.hold(groupLock(id))
	}
	left := map[string][]message{}
	for _, h := range c.sidesToTake(w, groups, conversation) {
		if ready := w.ready(h, c.now); len(ready) > 0 {
			left[h] = ready
		}
	}
	for taken := int64(0); len(left) > 0 && taken < top; {
		if len(rows) == 0 {
			c.bad = fmt.Sprintf("received too little: these were ready as well: %v", left)
			return
		}
		fields := strings.Fields(rows[0])
		h := fields[1]
		ready, ok := left[h]
		if !ok {
			c.bad = "received what was not ready: " + rows[0]
			return
		}
		for other := range left {
			if w.sides[other].priority > w.sides[h].priority {
				c.bad = fmt.Sprintf("received from %s before %s, whose priority is higher", h, other)
				return
			}
		}
		delete(left, h)
		ready = ready[:min(int64(len(ready)), top-taken)]
		taken += int64(len(ready))
		if c.bad = c.verifyBlock(w.sides[h], ready, rows[:min(len(rows), len(ready))]); c.bad != "" {
			return
		}
		rows = rows[len(ready):]
		c.took(w.sides[h], ready, w.queues[queueOf[w.sides[h].service]].retention)
	}
	if len(rows) > 0 {
		c.bad = "received too much: " + rows[0]
	}
}

// verifyBlock compares what was received on one conversation.
func (c *call) verifyBlock(s side, ready []message, rows []string) string {
	lastOrder := int64(0)
	for i, m := range ready {
		want := words(s.group, s.handle, 0, s.priority, m.seq, s.service, s.contract, m.typ, m.body, m.at)
		if i >= len(rows) {
			return "received too little: next is " + want
		}
		at := strings.LastIndex(rows[i], " ")
		got := words(rows[i][:at])
		if got != want {
			return fmt.Sprintf("received %s, want %s", got, want)
		}
		order, _ := strconv.ParseInt(rows[i][at+1:], 10, 64)
		if m.seq < 0 {
			continue // jumps the queue
		}
		if order <= lastOrder {
			return fmt.Sprintf("queuing order %d after %d", order, lastOrder)
		}
		lastOrder = order
	}
	return ""
}

// took is what receiving does to the side.
func (c *call) took(s side, messages []message, retention bool) {
	h := s.handle
	var keep []message
	var bodies []string
	gone := map[int64]bool{}
	for _, m := range messages {
		switch m.typ {
		case typeTimer:
			c.do(func(w *world) { w.change(h, func(s *side) { s.timer = 0 }) })
			continue
		case typeError:
			c.hold(endpointLock(h))
			c.do(func(w *world) { w.change(h, func(s *side) { s.state, s.expires = failed, false }) })
		case typeEnd:
			c.hold(endpointLock(h))
			c.do(func(w *world) {
				w.change(h, func(s *side) {
					s.expires = false
					if s.state == conversing {
						s.state = disconnectedInbound
					}
				})
			})
		default:
			bodies = append(bodies, m.body)
		}
		if m.order != 0 {
			keep = append(keep, m)
			gone[m.order] = true
		}
	}
	c.do(func(w *world) {
		w.inbox[h] = slices.DeleteFunc(slices.Clone(w.inbox[h]), func(m message) bool { return gone[m.order] })
		w.heard[h] = slices.Concat(w.heard[h], bodies)
		if retention {
			w.kept[h] = slices.Concat(w.kept[h], withStatus(keep, 0))
		}
	})
}
