package screen

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text fit for one line of a terminal: control characters, line breaks, invisible and invalid ones are
// written as in Go's string literals, so that neither the layout nor the terminal itself obeys them.
func Clean(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default: // IsPrint leaves out every space but ' ', and what changes the direction of writing
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// Plural is a number with what is counted, whose plural ends in s.
func Plural[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Width is the number of columns that text takes on a terminal.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0x303e || r >= 0x3041 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff01 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 ||
		r >= 0x1f300 && r <= 0x1f64f || r >= 0x1f680 && r <= 0x1f6ff || r >= 0x1f900 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd):
		return 2 // East Asian wide forms and pictographs
	}
	return 1
}

// Fit cuts text to a width and says so with an ellipsis; 0 is no limit.
func Fit(text string, width int) string {
	if width <= 0 || Width(text) <= width {
		return text
	}
	n := 0
	for i, r := range text {
		if n+runeWidth(r) > width-1 {
			return text[:i] + "…"
		}
		n += runeWidth(r)
	}
	return text
}

// Pad fills text up to a width with spaces, on the left when right is set.
func Pad(text string, width int, right bool) string {
	space := strings.Repeat(" ", max(0, width-Width(text)))
	if right {
		return space + text
	}
	return text + space
}

// OneLine makes one line of text that may have several, no wider than most columns.
func OneLine(text string, most int) string {
	return Fit(Clean(strings.Join(strings.Fields(text), " ")), most)
}

// Wrap breaks text at its spaces into lines no wider than width, each after the indent; 0 is no limit. A word that is
// wider gets a line of its own.
func Wrap(text, indent string, width int) string {
	var b strings.Builder
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && width > 0 && Width(indent)+Width(line)+1+Width(word) > width {
			b.WriteString(indent + line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		b.WriteString(indent + line + "\n")
	}
	return b.String()
}
