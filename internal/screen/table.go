package screen

import (
	"strings"
)

// Column is a column of a table.
type Column struct {
	Heading string
	// Right aligns it to the right, as numbers want it.
	Right bool
	// Shrinks lets it be cut where the table would be wider than the terminal.
	Shrinks bool
}

// Cell is a piece of text, cleaned when it is written, and its colour, which may be none.
type Cell struct {
	Text  string
	Color string
}

// Table writes rows under headings.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	// Color is whether to use colours.
	Color bool
	// Width is the most that a line may take where that can be had by cutting; 0 is no limit.
	Width int
}

// narrowest is what a column that shrinks keeps.
const narrowest = 8

// Add adds a row of text without colours.
func (t *Table) Add(texts ...string) {
	row := make([]Cell, len(texts))
	for i, text := range texts {
		row[i].Text = text
	}
	t.Rows = append(t.Rows, row)
}

// String is the whole table; nothing when it has no rows.
func (t *Table) String() string {
	if len(t.Rows) == 0 {
		return ""
	}
	widths := t.widths()
	var b strings.Builder
	line := func(cell func(i int) Cell) {
		var parts []string
		for i, column := range t.Columns {
			c := cell(i)
			text := Fit(Clean(c.Text), widths[i])
			padding := Pad("", widths[i]-Width(text), false)
			text = Paint(t.Color, c.Color, text)
			if column.Right {
				text = padding + text
			} else if i < len(t.Columns)-1 {
				text += padding
			}
			parts = append(parts, text)
		}
		b.WriteString(strings.TrimRight(strings.Join(parts, "  "), " ") + "\n")
	}
	line(func(i int) Cell { return Cell{t.Columns[i].Heading, Bold} })
	for _, row := range t.Rows {
		line(func(i int) Cell { return row[i] })
	}
	return b.String()
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	total := 2 * (len(widths) - 1)
	for i, column := range t.Columns {
		widths[i] = Width(Clean(column.Heading))
		for _, row := range t.Rows {
			widths[i] = max(widths[i], Width(Clean(row[i].Text)))
		}
		total += widths[i]
	}
	// The widest gives first.
	for ; t.Width > 0 && total > t.Width; total-- {
		widest := -1
		for i, column := range t.Columns {
			if column.Shrinks && widths[i] > narrowest && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}
