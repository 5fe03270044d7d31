package screen

import (
	"strings"
)

// Sequence draws a sequence diagram line by line: lifelines, and arrows between two of them.
type Sequence struct {
	// Lanes is how many lifelines there are.
	Lanes int
	// Margin is the number of columns before the first lifeline, Gap that from one to the next.
	Margin, Gap int
	// Color is whether to use colours.
	Color bool
}

// Bars is a line with nothing but lifelines.
func (s Sequence) Bars() string { return string(s.bars()) }

func (s Sequence) bars() []rune {
	line := []rune(strings.Repeat(" ", s.Margin+s.Gap*(s.Lanes-1)+1))
	for i := range s.Lanes {
		line[s.Margin+i*s.Gap] = '│'
	}
	return line
}

// Arrow is a line with an arrow from one lifeline to another: text in the margin, a label on the arrow, its colour, and
// a note after the last lifeline. Lost draws an arrow that does not arrive.
func (s Sequence) Arrow(margin string, from, to int, label, color, note string, lost bool) string {
	line := s.bars()
	left, right := s.Margin+min(from, to)*s.Gap, s.Margin+max(from, to)*s.Gap
	space := right - left - 1
	label = " " + Clean(label) + " "
	before := max(0, (space+1-Width(label))/2)
	label = cut(label, space-1-before)
	after := space - before - Width(label)
	if from > to && before == 0 {
		label, before = label[1:], 1 // its blank makes room for the tip
	}
	var arrow string
	if from < to {
		arrow = dashes(before) + label + dashes(after-1) + tip("▶", lost)
	} else {
		arrow = tip("◀", lost) + dashes(before-1) + label + dashes(after)
	}
	head := Pad(cut(Clean(margin), max(0, s.Margin-1)), s.Margin, false) + string(line[s.Margin:left+1])
	return strings.TrimRight(head+Paint(s.Color, color, arrow)+string(line[right:])+"  "+note, " ")
}

func dashes(n int) string { return strings.Repeat("─", max(0, n)) }

func tip(arrives string, lost bool) string {
	if lost {
		return "╳"
	}
	return arrives
}

// cut cuts text to a width.
func cut(text string, width int) string {
	n := 0
	for i, r := range text {
		if n += runeWidth(r); n > width {
			return text[:i]
		}
	}
	return text
}
