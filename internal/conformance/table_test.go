// Package conformance holds the list of Service Broker's rules against the tests, and the tests for rules that had none.
//
// rules.txt says of each rule what became of it. Tests say which rules they prove: a comment line "Rules: R-007, R-008"
// on or in a test function of any package, or behind "#" in a scenario of testdata/dialogs. For a rule that does not
// hold here they prove what happens instead; the line of docs/deviations.md that says so carries the anchor of the
// rule. docs/conformance.md is made of all three.
package conformance

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/conformance.md instead of comparing with it")

const (
	root      = "../.."
	page      = "docs/conformance.md"
	lastRule  = 417
	scenarios = "testdata/dialogs"
)

// verdict is what became of a rule.
type verdict string

const (
	holds         verdict = "holds"
	differs       verdict = "differs"
	notApplicable verdict = "not applicable"
	later         verdict = "later"
)

// rule is a line of rules.txt.
type rule struct {
	id, section string
	verdict     verdict
	what, why   string
}

// proof is a test that names rules.
type proof struct {
	name string // as the page shows it
	file string // from the root
}

// mayBeLater are the rules that concern several databases from the first word to the last. Others have to say why.
var mayBeLater = [][2]string{{"R-090", "R-095"}, {"R-258", "R-263"}, {"R-287", "R-313"}}

// laterReason begins the reason of a rule that is to be built later.
var laterReason = regexp.MustCompile(`^(Between databases|T-SQL text): `)

// Every rule is in the list, once and in order, with what its verdict demands, and the page says so.
func TestConformance(t *testing.T) {
	t.Parallel()
	rules := readRules(t)
	proofs := readProofs(t)
	anchors := readAnchors(t)

	for i, r := range rules {
		if want := fmt.Sprintf("R-%03d", i+1); r.id != want {
			t.Fatalf("rules.txt: %s where %s should be", r.id, want)
		}
		hasReason := r.why != ""
		switch r.verdict {
		case holds, differs:
			if len(proofs[r.id]) == 0 {
				t.Errorf("%s %s, but no test says that it proves it", r.id, r.verdict)
			}
			hasReason = false
		case notApplicable:
			if len(proofs[r.id]) > 0 {
				t.Errorf("%s is not applicable, but %s proves it", r.id, proofs[r.id][0].name)
			}
		case later:
			ranged := slices.ContainsFunc(mayBeLater, func(r2 [2]string) bool { return r2[0] <= r.id && r.id <= r2[1] })
			if !ranged && !laterReason.MatchString(r.why) {
				t.Errorf("%s may not be built later", r.id)
			}
		default:
			t.Errorf("%s: verdict %q", r.id, r.verdict)
		}
		if demandsReason := r.verdict == notApplicable || r.verdict == later; demandsReason != (r.why != "") || !demandsReason && hasReason {
			t.Errorf("%s %s: reason %q", r.id, r.verdict, r.why)
		}
		if anchors[r.id] != (r.verdict == differs) {
			t.Errorf("%s %s; has an anchor in docs/deviations.md: %t", r.id, r.verdict, anchors[r.id])
		}
	}
	if len(rules) != lastRule {
		t.Errorf("%d rules, not %d", len(rules), lastRule)
	}
	for id, list := range proofs {
		if n := slices.IndexFunc(rules, func(r rule) bool { return r.id == id }); n < 0 {
			t.Errorf("%s names %s, which does not exist", list[0].name, id)
		}
	}
	if t.Failed() {
		return
	}

	path := filepath.Join(root, page)
	text := render(rules, proofs)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%s is not what rules.txt and the tests say: go test ./internal/conformance -run TestConformance -update (%v)", page, err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readRules reads rules.txt: "# section", or "id | verdict | what it says | why".
func readRules(t *testing.T) []rule {
	t.Helper()
	var (
		rules   []rule
		section string
	)
	for line := range strings.Lines(readFile(t, "internal/conformance/rules.txt")) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			section = heading
			continue
		}
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		part := strings.Split(line+" | ", " | ")
		if len(part) < 4 || part[2] == "" {
			t.Fatalf("rules.txt: %s", line)
		}
		rules = append(rules, rule{part[0], section, verdict(part[1]), part[2], part[3]})
	}
	return rules
}

var (
	claim = regexp.MustCompile(`(?m)^\s*(?://|#)\s*Rules: (.*)$`)
	ids   = regexp.MustCompile(`^R-\d{3}(, R-\d{3})*$`)
)

// claimed returns the rules that a text names in lines of the one form there is.
func claimed(t *testing.T, where, text string) []string {
	t.Helper()
	var list []string
	for _, m := range claim.FindAllStringSubmatch(text, -1) {
		if !ids.MatchString(strings.TrimSpace(m[1])) {
			t.Errorf("%s: %q is not of the form R-001, R-002", where, m[1])
			continue
		}
		list = append(list, strings.Split(strings.TrimSpace(m[1]), ", ")...)
	}
	return list
}

// readProofs finds the tests that name rules, by rule.
func readProofs(t *testing.T) map[string][]proof {
	t.Helper()
	proofs := map[string][]proof{}
	add := func(p proof, rules []string) {
		for _, id := range rules {
			if !slices.Contains(proofs[id], p) {
				proofs[id] = append(proofs[id], p)
			}
		}
	}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != root && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case entry.IsDir():
		case strings.HasSuffix(rel, "_test.go"):
			readTests(t, rel, add)
		case strings.HasPrefix(rel, scenarios+"/"):
			add(proof{strings.TrimPrefix(rel, "testdata/"), rel}, claimed(t, rel, readFile(t, rel)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range proofs {
		slices.SortFunc(list, func(p, q proof) int { return cmp.Compare(p.name, q.name) })
	}
	return proofs
}

// readTests reads a file of tests. A line that names rules belongs to the test function that it stands on or in.
func readTests(t *testing.T, file string, add func(p proof, rules []string)) {
	t.Helper()
	text := readFile(t, file)
	if !claim.MatchString(text) {
		return
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	belongs := map[*ast.Comment]bool{}
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
			continue
		}
		begin := f.Pos()
		if f.Doc != nil {
			begin = f.Doc.Pos()
		}
		test := proof{filepath.Base(filepath.Dir(file)) + "." + f.Name.Name, file}
		for _, group := range parsed.Comments {
			for _, c := range group.List {
				if begin <= c.Pos() && c.Pos() < f.End() {
					belongs[c] = true
					add(test, claimed(t, set.Position(c.Pos()).String(), c.Text))
				}
			}
		}
	}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			if claim.MatchString(c.Text) && !belongs[c] {
				t.Errorf("%v: names rules outside of a test", set.Position(c.Pos()))
			}
		}
	}
}

var anchor = regexp.MustCompile(`<a id="r-(\d{3})"></a>`)

// readAnchors returns the rules that docs/deviations.md has a line for: a row of a table with what differs, why, and
// how to live with it.
func readAnchors(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for line := range strings.Lines(readFile(t, "docs/deviations.md")) {
		list := anchor.FindAllStringSubmatch(line, -1)
		if len(list) == 0 {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(anchor.ReplaceAllString(line, "")), "|"), " | ")
		if len(cells) != 3 || slices.ContainsFunc(cells, func(c string) bool { return strings.Trim(c, " —") == "" }) {
			t.Errorf("docs/deviations.md: does not say what, why and how to live with it: %s", line)
		}
		for _, m := range list {
			if id := "R-" + m[1]; found[id] {
				t.Errorf("docs/deviations.md: %s twice", id)
			} else {
				found[id] = true
			}
		}
	}
	return found
}

// render writes the page.
func render(rules []rule, proofs map[string][]proof) string {
	count := map[verdict]int{}
	for _, r := range rules {
		count[r.verdict]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Conformance

What became of each rule of Service Broker that the project keeps a list of: the behaviour that SQL Server's documentation, its
authors and the running product show, in %d rules. The list has the sources; here it is in a few words of our own.

| verdict | rules | meaning |
|---|---|---|
| %s | %d | as in SQL Server; the tests named prove it |
| %s | %d | a line in [deviations](deviations.md) says what happens instead, why, and how to live with it; the tests named prove that it does |
| %s | %d | there is nothing in PostgreSQL that it could apply to |
| %s | %d | concerns several databases, or T-SQL as text |

This page is made by `+"`go test ./internal/conformance -run TestConformance -update`"+`. Tests name the rules that they prove: `+"`grep -rn 'Rules:.*R-131'`"+` finds them.
`, len(rules), holds, count[holds], differs, count[differs], notApplicable, count[notApplicable], later, count[later])
	section := ""
	for _, r := range rules {
		if r.section != section {
			section = r.section
			fmt.Fprintf(&b, "\n## %s\n\n| Rule | What it is about | Here | Proof, or reason |\n|---|---|---|---|\n", section)
		}
		shown, last := string(r.verdict), r.why
		if r.verdict == differs {
			shown = fmt.Sprintf("[%s](deviations.md#%s)", differs, strings.ToLower(r.id))
		}
		if last == "" {
			var links []string
			for _, p := range proofs[r.id] {
				links = append(links, fmt.Sprintf("[%s](../%s)", p.name, p.file))
			}
			last = strings.Join(links, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.id, r.what, shown, last)
	}
	return b.String()
}
