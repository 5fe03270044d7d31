package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// changes is what a migration has to do to get from the last blocks of the earlier ones to the sources.
type changes struct {
	first    bool     // there are no earlier blocks
	up, down []source // what each direction writes, in load order
	gone     []source // what has no source any more
	replaced []object // what up cannot turn into its successor by create or replace
	added    []object // what down cannot turn into its predecessor
}

// compare finds the changes from before, the last block of each path, to the sources. Not only what differs is
// written: also what is bound, when it is created, to something that has to be dropped.
func compare(before, sources []source) (changes, error) {
	c := changes{first: len(before) == 0}
	changed := map[string]bool{}
	note := func(old, s source) error {
		was, err := objects(old)
		if err != nil {
			return err
		}
		is, err := objects(s)
		if err != nil {
			return err
		}
		changed[old.path], changed[s.path] = true, true
		c.replaced = append(c.replaced, unlikeAny(was, is)...)
		c.added = append(c.added, unlikeAny(is, was)...)
		return nil
	}
	for _, s := range sources {
		var old source
		if i := at(s.path, before); i >= 0 {
			old = before[i]
		}
		if old != s {
			if err := note(old, s); err != nil {
				return c, err
			}
		}
	}
	// Load order with what order.txt leads to no more: each behind what it stood behind.
	all, place := slices.Clone(sources), 0
	for _, s := range before {
		if i := at(s.path, all); i >= 0 {
			place = i + 1
			continue
		}
		if err := note(s, source{}); err != nil {
			return c, err
		}
		c.gone = append(c.gone, s)
		all = slices.Insert(all, place, s)
		place++
	}
	if len(changed) == 0 {
		return c, nil
	}
	for _, s := range sources {
		bound, err := isBound(s, c.replaced, c.added)
		if err != nil {
			return c, err
		}
		// What is new has no privileges yet, what was dropped has lost them.
		if bound || path.Dir(s.path) == "grants" {
			changed[s.path] = true
		}
	}
	for _, s := range all {
		if !changed[s.path] {
			continue
		}
		if at(s.path, sources) >= 0 {
			c.up = append(c.up, s)
		}
		if i := at(s.path, before); i >= 0 {
			c.down = append(c.down, before[i])
		}
	}
	return c, nil
}

// at is the index of the path in the list, or -1.
func at(path string, list []source) int {
	return slices.IndexFunc(list, func(s source) bool { return s.path == path })
}

// object is something that a source creates.
type object struct {
	kind     string   // function, procedure, view or trigger
	name     string   // without the schema
	in       string   // its schema; of a trigger, the table with its schema
	args     string   // of a routine, without defaults
	result   string   // of a routine
	defaults int      // how many arguments of a routine may be left out
	columns  []string // of a view, each with the type it is cast to
}

// becomes reports whether create or replace of next turns o into it.
func (o object) becomes(next object) bool {
	return o.kind == next.kind && o.name == next.name && o.in == next.in && o.args == next.args && o.result == next.result &&
		o.defaults <= next.defaults &&
		len(o.columns) <= len(next.columns) && slices.Equal(o.columns, next.columns[:len(o.columns)])
}

// unlikeAny returns those of list that become none of next.
func unlikeAny(list, next []object) []object {
	var unlike []object
	for _, o := range list {
		if !slices.ContainsFunc(next, o.becomes) {
			unlike = append(unlike, o)
		}
	}
	return unlike
}

// isBound reports whether the source creates something, such as a view or an SQL-standard body, in which
// PostgreSQL keeps a reference to one of the objects. A body between dollar quotes is only text.
func isBound(s source, lists ...[]object) (bool, error) {
	statements, err := createStatements(s)
	if err != nil {
		return false, err
	}
	for _, o := range slices.Concat(lists...) {
		for _, st := range statements {
			if strings.Contains(st.text+" ", " "+o.in+" . "+o.name+" ") {
				return true, nil
			}
		}
	}
	return false, nil
}

func createStatements(s source) ([]statement, error) {
	tokens, err := scan(s.text)
	if err != nil {
		return nil, fmt.Errorf("sql/%s: %w", s.path, err)
	}
	return slices.DeleteFunc(split(tokens), func(st statement) bool { return !strings.HasPrefix(st.text, "create or replace ") }), nil
}

// objects lists what the source creates.
func objects(s source) ([]object, error) {
	statements, err := createStatements(s)
	if err != nil {
		return nil, err
	}
	var list []object
	for _, st := range statements {
		t := st.tokens[3:]
		o := object{kind: t[0].text}
		switch {
		case o.kind == "trigger":
			at := slices.IndexFunc(t, func(t token) bool { return t.text == "on" })
			o.name, o.in = t[1].text, spell(t[at+1:at+4])
		case len(t) > 4 && t[2].text == ".":
			o.in, o.name = t[1].text, t[3].text
			t = t[4:]
			if o.kind == "view" {
				o.columns = viewColumns(t)
				break
			}
			args, rest := parenthesized(t)
			var texts []string
			for _, arg := range cut(args, ",") {
				declared := cut(arg, "default", "=")
				o.defaults += len(declared) - 1
				texts = append(texts, spell(declared[0]))
			}
			o.args = strings.Join(texts, ", ")
			o.result = spell(cut(rest, "language")[0])
		default:
			return nil, fmt.Errorf("sql/%s:%d: %q: the name needs its schema", s.path, st.line, firstWords(st.text))
		}
		list = append(list, o)
	}
	return list, nil
}

// viewColumns reads the select list: names, and the types of casts, since neither may change.
func viewColumns(t []token) []string {
	_, t, _ = cutAt(t, "select")
	list, _, _ := cutAt(t, "from")
	var columns []string
	for _, item := range cut(list, ",") {
		column := item[len(item)-1].text
		item = item[:len(item)-1]
		if n := len(item); n > 0 && item[n-1].text == "as" {
			item = item[:n-1]
		}
		for i := len(item) - 1; i > 0 && !slices.Contains([]string{")", "end"}, item[i].text); i-- {
			if item[i].text == ":" && item[i-1].text == ":" {
				column += " " + spell(item[i+1:])
				break
			}
		}
		columns = append(columns, column)
	}
	return columns
}

// cutAt cuts around the first of the words that stands outside of all parentheses and case expressions.
func cutAt(t []token, words ...string) (before, after []token, found bool) {
	depth := 0
	for i, t0 := range t {
		switch t0.text {
		case "(", "case":
			depth++
		case ")", "end":
			depth--
		}
		if depth == 0 && slices.Contains(words, t0.text) {
			return t[:i], t[i+1:], true
		}
	}
	return t, nil, false
}

// cut cuts at all of the words outside of parentheses; of nothing it makes no piece.
func cut(t []token, words ...string) [][]token {
	var pieces [][]token
	for len(t) > 0 {
		piece, rest, _ := cutAt(t, words...)
		pieces = append(pieces, piece)
		t = rest
	}
	return pieces
}

// parenthesized returns what stands between the parenthesis that t begins with and its partner, and the rest.
func parenthesized(t []token) (inside, rest []token) {
	depth := 0
	for i, t0 := range t {
		switch t0.text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return t[1:i], t[i+1:]
			}
		}
	}
	return nil, t
}

var tightRE = regexp.MustCompile(` ([,.)\]\[(])|([.(\[]) `)

// spell writes tokens as people do.
func spell(t []token) string {
	var words []string
	for _, t0 := range t {
		words = append(words, t0.text)
	}
	return strings.TrimSpace(tightRE.ReplaceAllString(tightRE.ReplaceAllString(strings.Join(words, " "), "$1$2"), "$1$2"))
}

// aside is what putAside appends to names; no name in sb ends so.
const aside = "~old"

// putAside renames what another object of the same name is to replace. It goes only afterwards, by dropAside, when
// nothing of sb depends on it any more: dropped first, it would have to take along all that is built on it,
// public verbs and thereby views and functions of users.
func putAside(list []object) string {
	var b strings.Builder
	for _, o := range list {
		switch o.kind {
		case "trigger":
			fmt.Fprintf(&b, "alter trigger %s on %s rename to %q;\n", o.name, o.in, o.name+aside)
		case "view":
			fmt.Fprintf(&b, "alter view %s.%s rename to %q;\n", o.in, o.name, o.name+aside)
		default:
			fmt.Fprintf(&b, "alter %s %s.%s(%s) rename to %q;\n", o.kind, o.in, o.name, o.args, o.name+aside)
		}
	}
	return b.String()
}
