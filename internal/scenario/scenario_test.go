// Package scenario plays the scenarios of testdata/dialogs, dialogs of several sessions written as text, and holds the
// cases that text cannot express. docs/scenarios.md says how to write one.
package scenario

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

const dialogs = "../../testdata/dialogs"

var update = flag.Bool("update", false, "write what comes out into the scenarios")

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestScenarios(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(dialogs, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		s, err := parseFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			t.Parallel()
			if err := play(t, pgtest.New(t), s, *update); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// cases are all that are known; a new one needs a line in the index.
const cases = `A-01 A-02 A-04 A-05 A-07 A-08 A-10 A-11 A-12 A-14 A-15 A-17 A-18 A-20 A-21 A-23 A-24 A-26 A-27 A-29 A-31 A-32 A-34
A-35 A-37 A-38 A-40 A-41 A-43 A-45 B-01 B-02 B-04 B-05 B-07 B-08 B-10 B-11 B-13 B-14 B-16 B-17 B-19 B-20 B-22 B-23 B-25
B-26 B-28 B-29 B-31 B-32 B-34 B-35 B-37 B-38 B-40 B-41 B-43 B-44 B-46 B-47 B-49 B-50 B-52 B-53 B-55 B-56 B-58 B-59 B-61
B-62 B-64 B-65 B-67 B-68 B-70 B-71 B-73 B-74`

// The index has every case, every scenario is in it, and what it names exists.
func TestIndex(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile(filepath.Join(dialogs, "INDEX.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests, scenarios := goTests(t), map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(dialogs, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		scenarios[filepath.Base(path)] = true
	}
	var (
		row      = regexp.MustCompile(`(?m)^\| ([AB]-\d+) \| .+? \| (.+) \|$`)
		file     = regexp.MustCompile(`\((\S+\.txt)\)`)
		test     = regexp.MustCompile("`(Test\\w+)`")
		scenario = regexp.MustCompile(`^([AB]-\d+)-[a-z0-9-]+\.txt$`)
		ids      []string
	)
	for _, m := range row.FindAllStringSubmatch(string(index), -1) {
		id, where := m[1], m[2]
		ids = append(ids, id)
		for _, f := range file.FindAllStringSubmatch(where, -1) {
			if !scenarios[f[1]] || !strings.HasPrefix(f[1], id+"-") {
				t.Errorf("%s: there is no scenario %s", id, f[1])
			}
			delete(scenarios, f[1])
			text, err := os.ReadFile(filepath.Join(dialogs, f[1]))
			if err != nil || !strings.HasPrefix(string(text), "# "+id+": ") {
				t.Errorf("%s does not begin with its case, %v", f[1], err)
			}
		}
		for _, name := range test.FindAllStringSubmatch(where, -1) {
			if !tests[name[1]] {
				t.Errorf("%s: there is no test %s", id, name[1])
			}
		}
	}
	if want := strings.Fields(cases); !slices.Equal(ids, want) {
		t.Errorf("the index has\n%v\nwant\n%v", ids, want)
	}
	for name := range scenarios {
		if scenario.MatchString(name) {
			t.Errorf("%s is not in the index", name)
		}
	}
}

// goTests returns the names of all Go tests of the repository.
func goTests(t *testing.T) map[string]bool {
	names := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "../.." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
