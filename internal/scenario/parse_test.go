package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// script is one scenario, parsed. The language is described in docs/scenarios.md.
type script struct {
	path     string
	lines    []string
	steps    []*step
	patience time.Duration // how long any step may take
}

// step is one thing that happens. What belongs to it depends on the verb.
type step struct {
	line     int // of the header, from 1
	verb     string
	sessions []string
	role     string        // session
	argument string        // role, include, pass
	times    int           // repeat
	body     []*step       // repeat
	sql      string        // sql
	captures []string      // sql: variables for the columns of the only row
	within   time.Duration // sql: tried again and again until it is as expected
	start    string        // sql: blocks, waits or runs; empty when its end is waited for
	blockers []string      // blocks
	want     *expectation  // sql, resume, notified; nil: success, and the rows do not matter
}

// expectation is what a statement has to come to.
type expectation struct {
	line, end  int // its lines, the first from 1, the last included
	rows       [][]string
	unordered  bool
	rolledBack bool
	code, text string // of an error; code "lost" when the connection has gone
}

var (
	statement = regexp.MustCompile(`^(?:(eventually)(?: (\d+[a-z]+))? )?([a-z]\w*(?:, [a-z]\w*)*):(?:\s+(.*))?$`)
	resume    = regexp.MustCompile(`^([a-z]\w*(?:, [a-z]\w*)*) resumes?$`)
	capture   = regexp.MustCompile(`\s->((?:\s*,?\s*\$[a-z]\w*)+)\s*$`)
	variable  = regexp.MustCompile(`\$[a-z]\w*`)
)

func parseFile(path string) (*script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, string(text))
}

// parse also finds out what a script does wrong by itself: unknown sessions, a session that is given work while it is
// busy, work that nobody waits for.
func parse(path, text string) (*script, error) {
	p := &parser{
		script:   &script{path: path, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n"), patience: patience},
		sessions: map[string]bool{"setup": true}, roles: map[string]bool{}, busy: map[string]bool{},
	}
	steps, err := p.steps(false)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, p.at, err)
	}
	for name := range p.busy {
		return nil, fmt.Errorf("%s:%d: %s is still at work: where does it resume?", path, len(p.script.lines), name)
	}
	p.script.steps = steps
	return p.script, nil
}

type parser struct {
	script *script
	at     int // the line that was taken last, from 1

	sessions, roles, busy map[string]bool
}

// peek returns the next line, not yet taken.
func (p *parser) peek() (string, bool) {
	if p.at == len(p.script.lines) {
		return "", false
	}
	return strings.TrimRight(p.script.lines[p.at], " \t\r"), true
}

// steps reads to the end, or to the end of a repeat.
func (p *parser) steps(inRepeat bool) ([]*step, error) {
	var steps []*step
	opened := p.at
	for {
		line, ok := p.peek()
		switch {
		case !ok && inRepeat:
			p.at = opened
			return nil, fmt.Errorf("repeat without end")
		case !ok:
			return steps, nil
		}
		p.at++
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case line == "end" && inRepeat:
			return steps, nil
		}
		s, err := p.step(line)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
}

func (p *parser) step(line string) (*step, error) {
	s := &step{line: p.at}
	if m := statement.FindStringSubmatch(line); m != nil {
		return s, p.statement(s, m)
	}
	if m := resume.FindStringSubmatch(line); m != nil {
		s.verb, s.sessions = "resume", strings.Split(m[1], ", ")
		for _, name := range s.sessions {
			if !p.busy[name] {
				return nil, fmt.Errorf("%s is not at work", name)
			}
			delete(p.busy, name)
		}
		return s, p.expectation(s)
	}
	verb, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	s.verb, s.argument = verb, rest
	if len(words) == 0 {
		return nil, fmt.Errorf("not understood: %q", line)
	}
	switch verb {
	case "role":
		for _, name := range words {
			p.roles[name] = true
		}
	case "session":
		if n := len(words); n > 2 && words[n-2] == "as" {
			s.role, words = words[n-1], words[:n-2]
			if !p.roles[s.role] {
				return nil, fmt.Errorf("there is no role %s", s.role)
			}
		}
		for _, name := range words {
			if p.sessions[name] {
				return nil, fmt.Errorf("there is a session %s already", name)
			}
			p.sessions[name] = true
		}
		s.sessions = words
	case "kill", "cancel", "disconnect", "connect", "notified":
		s.sessions = words
		for _, name := range words {
			if !p.sessions[name] {
				return nil, fmt.Errorf("there is no session %s", name)
			}
		}
		if verb == "notified" {
			return s, p.expectation(s)
		}
	case "include", "pass":
	case "repeat":
		times, err := strconv.Atoi(rest)
		if err != nil {
			return nil, err
		}
		s.times = times
		s.body, err = p.steps(true)
		return s, err
	default:
		return nil, fmt.Errorf("not understood: %q", line)
	}
	return s, nil
}

// statement reads the SQL of a step, which goes on for as long as lines are indented, and what is expected of it.
func (p *parser) statement(s *step, header []string) error {
	s.verb, s.sessions = "sql", strings.Split(header[3], ", ")
	if header[1] != "" {
		s.within = patience
		if header[2] != "" {
			var err error
			if s.within, err = time.ParseDuration(header[2]); err != nil {
				return err
			}
		}
	}
	for _, name := range s.sessions {
		if !p.sessions[name] {
			return fmt.Errorf("there is no session %s", name)
		}
		if p.busy[name] {
			return fmt.Errorf("%s is still at work: where does it resume?", name)
		}
	}
	sql, end := header[4], p.at
	for i, line := range p.script.lines[p.at:] {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			sql += strings.Repeat("\n", p.at+i+1-end) + line
			end = p.at + i + 1
		} else if line != "" { // an empty line may be inside a body
			break
		}
	}
	p.at = end
	if m := capture.FindStringSubmatchIndex(sql); m != nil {
		for _, name := range variable.FindAllString(sql[m[2]:m[3]], -1) {
			s.captures = append(s.captures, name[1:])
		}
		sql = sql[:m[0]]
	}
	if s.sql = strings.TrimSpace(sql); s.sql == "" {
		return fmt.Errorf("nothing to do")
	}
	line, _ := p.peek()
	start, rest, _ := strings.Cut(line, " ")
	if start == "waits" || start == "runs" || start == "blocks" {
		p.at++
		s.start = start
		if start == "blocks" {
			s.blockers = strings.Split(strings.TrimPrefix(rest, "on "), ", ")
			for _, name := range s.blockers {
				if !p.sessions[name] {
					return fmt.Errorf("there is no session %q", name)
				}
			}
		} else if rest != "" {
			return fmt.Errorf("not understood: %q", line)
		}
		if s.within != 0 || s.captures != nil {
			return fmt.Errorf("a statement that goes on can neither be tried again nor captured")
		}
		for _, name := range s.sessions {
			p.busy[name] = true
		}
		return nil
	}
	return p.expectation(s)
}

// expectation reads the lines that say what a statement comes to, if there are any.
func (p *parser) expectation(s *step) error {
	e := &expectation{line: p.at + 1}
	for {
		line, _ := p.peek()
		switch {
		case strings.HasPrefix(line, "|"):
			cells, err := splitCells(line)
			if err != nil {
				p.at++
				return err
			}
			e.rows = append(e.rows, cells)
		case strings.HasPrefix(line, "! "):
			e.code, e.text, _ = strings.Cut(strings.TrimSpace(line[2:]), " ")
			e.text = strings.TrimSpace(e.text)
		case line == "(no rows)":
		case line == "(unordered)":
			e.unordered = true
		case line == "(rolled back)":
			e.rolledBack = true
		default:
			if p.at >= e.line {
				s.want = e
				return e.check()
			}
			return nil
		}
		p.at++
		e.end = p.at
	}
}

func (e *expectation) check() error {
	if e.code != "" && e.end != e.line || e.rolledBack && e.end != e.line {
		return fmt.Errorf("an error stands alone")
	}
	if e.unordered {
		for _, row := range e.rows {
			for _, cell := range row {
				if strings.HasPrefix(cell, "->") {
					return fmt.Errorf("rows in no order cannot be captured")
				}
			}
		}
	}
	return nil
}

// splitCells takes a line "| a | b |" apart. A cell in double quotes may hold anything.
func splitCells(line string) ([]string, error) {
	var cells []string
	rest := line
	for rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "|"); rest = strings.TrimSpace(rest) {
		if rest = strings.TrimSpace(rest[1:]); rest == "" && cells != nil {
			return cells, nil
		}
		cell := rest
		if quoted, err := strconv.QuotedPrefix(rest); err == nil && strings.HasPrefix(rest, `"`) {
			cell = quoted
		} else if end := strings.IndexByte(rest, '|'); end >= 0 {
			cell = rest[:end]
		}
		rest = rest[len(cell):]
		if cell = strings.TrimSpace(cell); cell == "" {
			return nil, fmt.Errorf(`an empty cell in %q: write "" for an empty text, null for none`, line)
		}
		cells = append(cells, cell)
	}
	if rest != "" {
		return nil, fmt.Errorf("%q after the cell %q", rest, cells[len(cells)-1])
	}
	return cells, nil
}

// name is the name of a script, its file's without the end.
func (s *script) name() string { return strings.TrimSuffix(filepath.Base(s.path), ".txt") }
