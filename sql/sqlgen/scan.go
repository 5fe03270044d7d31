package main

import (
	"fmt"
	"regexp"
	"slices"
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
	// inBody marks the tokens between the dollar quotes of a function body, which is SQL too.
	inBody bool
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

// scan cuts SQL into tokens. The dollar quotes of a body (after as or do) become signs with the tokens
// of the body between them; any other dollar-quoted text is one literal.
func scan(text string) ([]token, error) {
	var (
		tokens []token
		body   string // the dollar quote that is open
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
		t := token{kind: sign, text: rest[:1], line: line, inBody: body != "", first: first}
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
				switch {
				case body == t.text:
					body, t.inBody = "", false
				case body == "" && len(tokens) > 0 && slices.Contains([]string{"as", "do"}, tokens[len(tokens)-1].text):
					body = t.text
				default:
					end := strings.Index(rest[len(t.text):], t.text)
					if end < 0 {
						return nil, fmt.Errorf("line %d: unterminated %s", line, t.text)
					}
					t.kind, t.text = literal, rest[:end+2*len(t.text)]
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
	if body != "" {
		return nil, fmt.Errorf("unterminated %s", body)
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

// statement is one top-level statement: its tokens outside of its body, joined by one space.
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
		if t.inBody {
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
