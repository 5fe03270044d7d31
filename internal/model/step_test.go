package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// config is what a run has of its own.
type config struct {
	priorities bool
	poison     bool
}

func (c config) String() string {
	text := "config"
	if c.priorities {
		text += " priorities"
	}
	if c.poison {
		text += " poison"
	}
	return text
}

// step is one line of a script: who does what. It names conversations by what they were called when they began, so that
// it keeps its meaning, or becomes an illegal move, when steps before it are left out. "c1.i" is the side of the
// initiator, "c1.t" that of the target, "@c1.i" the group which that side is in, "g1" a group with an id of our own. A side also names the group that it may have
// begun in, which has the same id.
type step struct {
	who, verb string
	args      map[string]string
	text      string
}

// newStep makes a step of names and values; those without a value are left out.
func newStep(who, verb string, args ...string) step {
	st := step{who: who, verb: verb, args: map[string]string{}, text: who + " " + verb}
	for i := 0; i < len(args); i += 2 {
		if args[i+1] != "" {
			st.args[args[i]] = args[i+1]
			st.text += " " + args[i] + "=" + args[i+1]
		}
	}
	return st
}

// get is an argument; in a step that is being carried out uuids stand for names (see [run.resolve]).
func (st step) get(name string) string { return st.args[name] }

func (st step) list(name string) []string { return strings.Split(st.args[name], ",") }

func (st step) number(name string) int {
	n, _ := strconv.Atoi(st.args[name])
	return n
}

// isAbout: the step names the dialog.
func (st step) isAbout(dialog string) bool {
	for _, value := range st.args {
		for _, name := range strings.Split(value, ",") {
			if name = strings.TrimPrefix(name, "@"); name == dialog || strings.HasPrefix(name, dialog+".") {
				return true
			}
		}
	}
	return false
}

// duration is in microseconds.
func (st step) duration(name string) int64 {
	d, _ := time.ParseDuration(st.args[name])
	return d.Microseconds()
}

// script is what can be replayed.
type script struct {
	config config
	steps  []step
}

func (s script) String() string {
	lines := []string{s.config.String()}
	for _, st := range s.steps {
		lines = append(lines, st.text)
	}
	return strings.Join(lines, "\n") + "\n"
}

// parseScript reads what String has written; it passes over empty lines and those that begin with #.
func parseScript(text string) (script, error) {
	var s script
	for n, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if fields[0] == "config" {
			s.config = config{slices.Contains(fields, "priorities"), slices.Contains(fields, "poison")}
			continue
		}
		if len(fields) < 2 {
			return s, fmt.Errorf("line %d: %q is no step", n+1, line)
		}
		var args []string
		for _, field := range fields[2:] {
			name, value, _ := strings.Cut(field, "=")
			args = append(args, name, value)
		}
		s.steps = append(s.steps, newStep(fields[0], fields[1], args...))
	}
	return s, nil
}

// generator chooses steps at random. It looks at the model to choose sensible ones most of the time.
type generator struct {
	*rand.Rand
	m      *model
	names  map[string]string // uuid of every name
	dialog int
	serial int
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) choose(texts ...string) string { return texts[g.IntN(len(texts))] }

// next returns the next steps, mostly one.
func (g *generator) next() []step {
	switch n := g.IntN(1000); {
	case n < 60:
		return []step{newStep("clock", "tick", "by", fmt.Sprintf("%dms", []int{1, 20, 120, 900, 4000, 20000}[g.IntN(6)]))}
	case n < 75:
		// Traffic of others: the order of arrival goes on, and with it the hint where to search.
		return []step{newStep("clock", "traffic", "by", strconv.Itoa(100+g.IntN(500)))}
	}
	s := g.m.sessions[g.IntN(len(g.m.sessions))]
	if s.call != nil {
		if g.chance(10) {
			return []step{newStep(s.name, "kill")}
		}
		for _, o := range g.m.sessions {
			if o.call == nil && (s.call != nil || g.chance(40)) {
				s = o
			}
		}
		if s.call != nil {
			return []step{newStep(s.name, "kill")}
		}
	}
	control := func(verb string) []step { return []step{newStep(s.name, verb)} }
	switch n := g.IntN(100); {
	case n == 0:
		return control("kill")
	case s.failed && s.saves() > 0 && n < 60:
		return control("rollback_to")
	case s.failed:
		return control(g.choose("rollback", "commit"))
	case !s.open && n < 45:
		return control("begin")
	case s.open && n < 16:
		return control("commit")
	case s.open && n < 21:
		return control("rollback")
	case s.open && n < 29 && s.saves() < 3:
		return control("savepoint")
	case s.open && n < 34 && s.saves() > 0:
		return control("rollback_to")
	case s.open && n < 36 && s.saves() > 0:
		return control("release")
	}
	return g.statement(s)
}

// statement is a verb of a session.
func (g *generator) statement(s *session) []step {
	w := g.m.view(s)
	one := func(verb string, args ...string) []step {
		if g.chance(25) {
			args = append(args, "deadlock", "ok")
		}
		return []step{newStep(s.name, verb, args...)}
	}
	if n := len(w.sides); n < 6 && g.chance(30) || g.chance(6) {
		return g.begin(s, w, one)
	}
	for _, q := range []string{"QA", "QB"} {
		if !w.queues[q].on && g.chance(12) {
			return one("alter_queue", "name", q, "enabled", "true")
		}
	}
	h := g.side(w)
	from := g.queue(w, h)
	switch n := g.IntN(100); {
	case n < 26:
		count := ""
		if g.chance(15) {
			count = strconv.Itoa([]int{2, 3, 5, 70}[g.IntN(4)])
		}
		return one("send", "on", h, "type", g.messageType(w, h), "body", g.body(), "count", count)
	case n < 32:
		handles := []string{h}
		for range 1 + g.IntN(2) {
			if o := g.side(w); !slices.Contains(handles, o) || g.chance(3) {
				handles = append(handles, o)
			}
		}
		return one("multicast", "on", strings.Join(handles, ","), "type", g.messageType(w, h), "body", g.body())
	case n < 46:
		return one("receive", "from", from, "top", g.top())
	case n < 53:
		return one("receive", "from", from, "top", g.top(), "for", h, "nowait", g.choose("", "", "yes"))
	case n < 60:
		return one("receive", "from", from, "top", g.top(), "group", g.group(h), "nowait", g.choose("", "", "yes"))
	case n < 64:
		return one("get_conversation_group", "from", from)
	case n < 72:
		return one("move", "on", h, "group", g.group(g.side(w)))
	case n < 84:
		switch n := g.IntN(20); {
		case n < 10:
			return one("end", "on", h)
		case n < 15:
			return one("end", "on", h, "code", g.choose("7", "7", "7", "0"), "text", "no")
		case n < 19:
			return one("end", "on", h, "cleanup", "yes")
		}
		return one("end", "on", h, "code", "7")
	case n < 89:
		return one("timer", "on", h, "in", fmt.Sprintf("%dms", []int{1, 10, 100, 3000, 50000, 0}[g.IntN(6)]))
	case n < 91:
		return one("cancel", "on", h)
	case n < 94:
		g.serial++
		return one("set_state", "group", g.group(h), "state", g.choose("", strconv.Itoa(g.serial)))
	case n < 95:
		return one("get_state", "group", g.group(h))
	case n < 97:
		return one("alter_queue", "name", from, "enabled", g.choose("false", "false", "true"))
	case n < 98:
		return one("alter_queue", "name", from, "retention", g.choose("false", "true"))
	case n < 99:
		return one("deliver", "to", g.choose("", "", "QA", "QB"))
	}
	return one("maintain")
}

// begin begins a dialog, rarely many in one group: there is a limit beyond which receive looks at groups differently.
func (g *generator) begin(s *session, w *world, one func(verb string, args ...string) []step) []step {
	from := g.choose("A", "A", "B", "B", "C", "D")
	to := g.choose("A", "B", "B", "B", "C", "D", "Nowhere")
	contract := g.choose("Talk", "Talk", "Order")
	if g.chance(2) {
		from = "Nowhere"
	}
	lifetime, with, id := "", "", ""
	if g.chance(20) {
		lifetime = fmt.Sprintf("%dms", []int{5, 500, 5000, 60000, 0}[g.IntN(5)])
	}
	switch n := g.IntN(100); {
	case n < 25:
		with = g.side(w)
		from = g.service(w, with, from)
	case n < 45:
		id = g.group(g.side(w))
		if g.chance(60) {
			id = fmt.Sprintf("g%d", 1+g.IntN(3))
		}
	case n < 46:
		with, id = g.side(w), "g1"
	}
	count := 1
	if g.chance(2) {
		count, id, with = 18, fmt.Sprintf("g%d", 1+g.IntN(3)), ""
	}
	var steps []step
	for range count {
		g.dialog++
		name := fmt.Sprintf("c%d", g.dialog)
		steps = append(steps, one("begin_dialog", "as", name, "from", from, "to", to, "on", contract, "with", with, "group", id,
			"lifetime", lifetime)...)
		if count > 1 || g.chance(60) {
			steps = append(steps, newStep(s.name, "send", "on", name+".i", "type", map[string]string{"Talk": "Note", "Order": "Ask"}[contract],
				"body", g.body()))
		}
	}
	return steps
}

// side is the name of a side, mostly of one that is there.
func (g *generator) side(w *world) string {
	var there []string
	for name, handle := range g.names {
		if _, ok := w.sides[handle]; ok && strings.Contains(name, ".") {
			there = append(there, name)
		}
	}
	slices.Sort(there)
	if len(there) > 0 && !g.chance(5) {
		if g.chance(40) {
			there = there[:min(3, len(there))] // where everybody meets
		}
		return there[g.IntN(len(there))]
	}
	return fmt.Sprintf("c%d.%s", 1+g.IntN(g.dialog+1), g.choose("i", "t"))
}

func (g *generator) service(w *world, name, otherwise string) string {
	if s, ok := w.sides[g.names[name]]; ok && !g.chance(5) {
		return s.service
	}
	return otherwise
}

// group is the group of a side, or one of ours, or the one that the side began in, which has its id.
func (g *generator) group(side string) string {
	switch n := g.IntN(100); {
	case n < 12:
		return fmt.Sprintf("g%d", 1+g.IntN(3))
	case n < 20:
		return side
	}
	return "@" + side
}

func (g *generator) queue(w *world, name string) string {
	if s, ok := w.sides[g.names[name]]; ok && !g.chance(4) {
		return queueOf[s.service]
	}
	return g.choose("QA", "QB")
}

func (g *generator) messageType(w *world, name string) string {
	if s, ok := w.sides[g.names[name]]; ok && !g.chance(4) {
		switch {
		case s.contract == "Talk":
			return "Note"
		case s.initiator:
			return "Ask"
		}
		return "Answer"
	}
	return g.choose("Note", "Ask", "Answer", "Other", "Unknown")
}

func (g *generator) top() string { return g.choose("", "", "1", "1", "1", "2", "5", "0", "65") }

func (g *generator) body() string {
	g.serial++
	return fmt.Sprintf("m%d", g.serial)
}
