package demo

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pgsbroker/sbroker/testdata"
)

func TestDrawing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &Drawing{out: &out}
	d.Lifelines()
	for _, e := range []event{
		{Report: "R-1", From: "employee", To: "reports", Message: "Report", Note: "李小龍: 1 490\n TWD"},
		{Report: "R-1", From: "reports", To: "employee", Message: "Error -8489"},
		{Report: "a-long-number", From: "approver", To: "approvals", Message: "EndDialog"},
		{Report: "R-1", From: "approvals", To: "expenses", Message: strings.Repeat("x", 99), Note: strings.Repeat("y", 99)},
		{Report: "R-1", From: "nowhere", To: "expenses", Message: "?"},
	} {
		out.WriteString(d.line(e) + "\n")
	}
	d.Say("%d left", 0)
	want := `
    employee        queues        expenses        queues        approver
        │              │              │              │              │
R-1     │─── Report ──▶│              │              │              │  李小龍: 1 490 TWD
R-1     │◀ Error -8489─│              │              │              │
a-long- │              │              │              │◀─ EndDialog ─│
R-1     │              │              │◀xxxxxxxxxxxx─│              │  ` + strings.Repeat("y", 89) + `…
R-1: ? from nowhere to expenses
        · 0 left
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	d.color = true
	colored := d.line(event{Report: "R-1", From: "expenses", To: "reports", Message: "Approved"})
	if !strings.Contains(colored, "\x1b[32m") || !utf8.ValidString(colored) {
		t.Errorf("%q", colored)
	}
}

// The built-in input has everything that the demonstration is to show.
func TestInput(t *testing.T) {
	t.Parallel()
	in, err := ParseInput(testdata.ExpenseReports)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range in.Reports {
		seen["scene "+r.Scene]++
		seen["expect "+r.Expect]++
	}
	for _, scene := range scenes {
		if seen["scene "+scene] == 0 {
			t.Errorf("no report in scene %q", scene)
		}
	}
	for _, outcome := range outcomes {
		if outcome != "broken" && seen["expect "+outcome] == 0 {
			t.Errorf("no report is expected to be %s", outcome)
		}
	}
}
