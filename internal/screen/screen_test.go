package screen

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "",
		`//a "quoted" 'name' \`:     `//a "quoted" 'name' \`,
		"李小龍 ñ é €":                 "李小龍 ñ é €",
		"two\nlines\tand\r":         `two\nlines\tand\r`,
		"\x1b[2J\x07":               `\x1b[2J\a`,
		"\u202egnol\u200b\u00a0x":   `\u202egnol\u200b\u00a0x`,
		"bad \xff\xfe and \uFFFD":   `bad \xff\xfe and ` + "\uFFFD",
		"\u009b31m":                 `\u009b31m`,
		strings.Repeat("x", 10_000): strings.Repeat("x", 10_000),
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"queue", 0, "queue"},
		{"queue", 5, "queue"},
		{"queues", 5, "queu…"},
		{"李小龍", 6, "李小龍"},
		{"李小龍", 5, "李小…"},
		{"李小龍", 4, "李…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
		{"queue", 1, "…"},
	} {
		got := Fit(test.text, test.width)
		if got != test.want || test.width > 0 && Width(got) > test.width {
			t.Errorf("%q in %d: got %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	table := Table{Columns: []Column{{Heading: "QUEUE", Shrinks: true}, {Heading: "READY", Right: true}, {Heading: "STATE"}}}
	if got := table.String(); got != "" {
		t.Errorf("an empty table is %q", got)
	}
	table.Add("李小龍\n", "7", "on")
	table.Add("a-rather-long-name", "12345678", "")
	want := `
QUEUE                  READY  STATE
李小龍\n                   7  on
a-rather-long-name  12345678
`
	if diff := cmp.Diff(want, "\n"+table.String()); diff != "" {
		t.Error(diff)
	}
	table.Width = 28
	want = `
QUEUE           READY  STATE
李小龍\n            7  on
a-rather-l…  12345678
`
	if diff := cmp.Diff(want, "\n"+table.String()); diff != "" {
		t.Error(diff)
	}
	table.Width = 5 // what cannot be is not tried for ever
	table.Color = true
	table.Rows[0][2].Color = Green
	if got := table.String(); !strings.Contains(got, "\x1b[32mon\x1b[0m\n") || !strings.Contains(got, "\na-rathe…  12345678\n") {
		t.Errorf("%q", got)
	}
}

func TestSequence(t *testing.T) {
	t.Parallel()
	s := Sequence{Lanes: 2, Margin: 2, Gap: 20}
	lines := []string{
		s.Bars(),
		s.Arrow("", 0, 1, "0 //a", Cyan, "note", false),
		s.Arrow("x\ny", 1, 0, "1 李小龍", "", "", false),
		s.Arrow("", 0, 1, strings.Repeat("龍", 40), "", "cut", true),
		s.Arrow("", 1, 0, strings.Repeat("y", 40), "", "", true),
	}
	want := `
  │                   │
  │────── 0 //a ─────▶│  note
x │◀──── 1 李小龍 ────│
  │ 龍龍龍龍龍龍龍龍─╳│  cut
  │╳yyyyyyyyyyyyyyyyy─│
`
	got := "\n" + strings.Join(lines, "\n") + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, line := range lines {
		if Width(line) < 23 {
			t.Errorf("%q is %d wide", line, Width(line))
		}
	}
	s.Color = true
	if got := s.Arrow("", 0, 1, "x", Red, "", false); !strings.Contains(got, "│\x1b[31m─") {
		t.Errorf("%q", got)
	}
}

func TestNoTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, out := range []any{file, &bytes.Buffer{}, nil} {
		if IsTerminal(out) {
			t.Errorf("%T is a terminal", out)
		}
	}
	for text, want := range map[string]int{"": 0, "80": 80, "-5": 0, "a": 0, "99999999999999999999": 0} {
		if got := columnsVariable(text); got != want {
			t.Errorf("COLUMNS=%q: %d", text, got)
		}
	}
}
