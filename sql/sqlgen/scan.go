package main

import (
	"fmt"
	"regexp"
	"strings"
)

type kind int

const (
	word    kind = iota // keyword or unquoted name
	quoted              // "name"
	literal             // string or number
	sign                // anything else, one character
)

// token is a piece of SQL; comments and space are left out.
type token struct {
	kind kind
	text string
	line int
	// depth counts the dollar-quoted bodies around the token: their inside is scanned too.
	depth int
	// first marks the first token of a line.
	first bool
}

// pieceRE takes the next piece off the text; the alternatives are tried in this order.
var pieceRE = regexp.MustCompile(`(?s)^(?:` +
	`(\s+|--[^\n]*)` + // 1 space, line comment
	`|((?i:[ebxn]|u&)?'(?:[^']|'')*')` + // 2 string (e'' is refined below)
	`|("(?:[^"]|"")*")` + // 3 quoted name
	`|(\$(?:[A-Za-z_]\w*)?\$)` + // 4 dollar quote
	`|([A-Za-z_\x{80}-\x{10ffff}][\w$\x{80}-\x{10ffff}]*)` + // 5 word
	`|(\d[\w.]*)` + // 6 number
	`)`)

var escapeStringRE = regexp.MustCompile(`(?s)^[eE]'(?:[^'\\]|\\.|'')*'`)

// scan cuts SQL into tokens. Dollar quotes become signs with the tokens of their inside between
// them, which is right for bodies and harmless for text that happens to be quoted so.
func scan(text string) ([]token, error) {
	var (
		tokens []token
		quotes []string // open dollar quotes
		line   = 1
		first  = true
	)
	for pos := 0; pos < len(text); {
		rest := text[pos:]
		if strings.HasPrefix(rest, "/*") {
			length, ok := blockComment(rest)
			if !ok {
				return nil, fmt.Errorf("line %d: unterminated comment", line)
			}
			line += strings.Count(rest[:length], "\n")
			pos += length
			continue
		}
		m := pieceRE.FindStringSubmatchIndex(rest)
		t := token{kind: sign, text: rest[:1], line: line, depth: len(quotes), first: first}
		if m != nil {
			t.text = rest[:m[1]]
			if escaped := escapeStringRE.FindString(rest); escaped != "" {
				t.text = escaped
			}
			switch {
			case m[2] >= 0: // space or comment
				if strings.Contains(t.text, "\n") {
					line += strings.Count(t.text, "\n")
					first = true
				}
				pos += len(t.text)
				continue
			case m[4] >= 0, m[12] >= 0:
				t.kind = literal
			case m[6] >= 0:
				t.kind = quoted
			case m[8] >= 0:
				if n := len(quotes); n > 0 && quotes[n-1] == t.text {
					quotes = quotes[:n-1]
					t.depth = len(quotes)
				} else {
					quotes = append(quotes, t.text)
				}
			case m[10] >= 0:
				t.kind = word
			}
		} else if rest[0] == '\'' || rest[0] == '"' {
			return nil, fmt.Errorf("line %d: unterminated %c", line, rest[0])
		}
		tokens = append(tokens, t)
		line += strings.Count(t.text, "\n")
		first = false
		pos += len(t.text)
	}
	if len(quotes) > 0 {
		return nil, fmt.Errorf("unterminated %s", quotes[len(quotes)-1])
	}
	return tokens, nil
}

// blockComment returns the length of the comment that s begins with; comments nest.
func blockComment(s string) (int, bool) {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1, true
			}
		}
	}
	return 0, false
}

// statement is one top-level statement: its tokens outside dollar-quoted bodies, joined by one space.
type statement struct {
	text   string
	line   int
	tokens []token
}

// split cuts at the semicolons that end a statement, which those of begin atomic … end do not.
func split(tokens []token) []statement {
	var list []statement
	var current statement
	atomic := 0
	flush := func() {
		if len(current.tokens) > 0 {
			list = append(list, current)
		}
		current = statement{}
	}
	for i, t := range tokens {
		if t.depth > 0 {
			continue
		}
		switch {
		case t.text == "begin" && i+1 < len(tokens) && tokens[i+1].text == "atomic", t.text == "case" && atomic > 0:
			atomic++
		case t.text == "end" && atomic > 0:
			atomic--
		case t.text == ";" && atomic == 0:
			flush()
			continue
		}
		if len(current.tokens) == 0 {
			current.line = t.line
		} else {
			current.text += " "
		}
		current.text += t.text
		current.tokens = append(current.tokens, t)
	}
	flush()
	return list
}

// header returns the lines of a create statement after its argument list, spaced as people write them.
func (st statement) header() []string {
	var lines []string
	depth, closed := 0, false
	for _, t := range st.tokens {
		if closed {
			switch {
			case t.first || len(lines) == 0:
				lines = append(lines, t.text)
			case t.text == "," || t.text == ")":
				lines[len(lines)-1] += t.text
			default:
				lines[len(lines)-1] += " " + t.text
			}
			continue
		}
		switch t.text {
		case "(":
			depth++
		case ")":
			depth--
			closed = depth == 0
		}
	}
	return lines
}
