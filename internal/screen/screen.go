// Package screen writes for people who sit at a terminal: colours only where they are welcome, columns that line up
// whatever script a name is written in, and no name or message body that could play tricks on the terminal.
package screen

import (
	"io"
	"os"
)

// The colours, as parameters of the SGR control sequence.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
)

// Paint colours text when colours are on.
func Paint(color bool, how, text string) string {
	if !color || how == "" || text == "" {
		return text
	}
	return "\x1b[" + how + "m" + text + "\x1b[0m"
}

// HasColor reports whether colours are welcome: see https://no-color.org.
func HasColor(out io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(out)
}

// IsTerminal reports whether a stream, to read from or to write to, is a terminal.
func IsTerminal(stream any) bool {
	_, _, ok := size(stream)
	return ok
}

// Rows is the height of a terminal, 0 when it does not tell; false when the stream is none.
func Rows(stream any) (int, bool) {
	_, rows, ok := size(stream)
	return rows, ok
}

// Columns is the width to write for: the terminal's, or what COLUMNS says; 0, without limit, when neither is known.
func Columns(out io.Writer) int {
	if n, _, ok := size(out); ok && n > 0 {
		return n
	}
	return columnsVariable(os.Getenv("COLUMNS"))
}

// columnsVariable is the value of COLUMNS, 0 for one that makes no sense.
func columnsVariable(text string) int {
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' || n > 9999 {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}
