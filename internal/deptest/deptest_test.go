// Package deptest keeps the direction of dependencies: what an application links in must stay small.
package deptest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/pgsbroker/sbroker/"
)

// rules say what a directory, with all below it, may import besides the standard library. The longest match counts.
var rules = []struct {
	dir, why string
	allowed  []string
}{
	{
		"sbroker", "every application links the client: it must bring nothing to agree about but the driver",
		[]string{"github.com/jackc/pgx/v5"},
	},
	{
		"sbroker/sbrokertest", "test helpers for users of the client; they choose their own test libraries",
		[]string{module + "sbroker", "github.com/jackc/pgx/v5"},
	},
	{
		"activator", "applications embed it to run Go handlers; it is a client like any other",
		[]string{module + "internal/nearest", module + "sbroker", "github.com/jackc/pgx/v5", "golang.org/x/sync"},
	},
	{"migrations", "files to embed, for whatever tool applies them", nil},
	{"testdata", "files to embed", nil},
	{"sql", "the generator has to run before anything else is there", nil},
	{
		"cmd/sbactivator", "the program: libraries for commands and configuration end here",
		[]string{
			module + "activator", module + "internal", module + "migrations", module + "sbroker", module + "testdata",
			"github.com/go-viper/mapstructure/v2", "github.com/jackc/pgx/v5", "github.com/prometheus/client_golang",
			"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/spf13/viper", "go.yaml.in/yaml/v3",
		},
	},
	{
		"internal/demo", "an application like a user's, so that it shows what a user needs; it installs the broker too",
		[]string{
			module + "activator", module + "internal/migrate", module + "internal/screen", module + "sbroker",
			"github.com/jackc/pgx/v5",
		},
	},
	{
		"examples", "what README.md shows: a user's program needs nothing else",
		[]string{module + "activator", module + "sbroker", "github.com/jackc/pgx/v5"},
	},
	{"internal/doctor", "queries and what their rows mean", []string{"github.com/jackc/pgx/v5"}},
	{"internal/nearest", "the activator links it, and so do applications", nil},
	{"internal/screen", "text for terminals", []string{"golang.org/x/sys"}},
	{
		"internal/migrate", "the only one that knows golang-migrate, whose edges it covers",
		[]string{module + "migrations", "github.com/golang-migrate/migrate/v4", "github.com/jackc/pgx/v5"},
	},
	{
		"internal/privatepg", "the only one that knows how servers are run in containers and out of archives",
		[]string{
			"github.com/fergusstrange/embedded-postgres", "github.com/jackc/pgx/v5", "github.com/moby/moby/api",
			"github.com/moby/moby/client",
			"github.com/testcontainers/testcontainers-go", "golang.org/x/sys",
		},
	},
	{
		"internal/pgtest", "databases for tests; it migrates by hand, because internal/migrate is tested with it",
		[]string{module + "internal/privatepg", module + "migrations", "github.com/jackc/pgx/v5", "go.uber.org/goleak"},
	},
}

func TestDirection(t *testing.T) {
	t.Parallel()
	used := map[string]bool{} // rules that met a file
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && file != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
			return fs.SkipDir
		}
		if entry.IsDir() && file != root {
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
				return fs.SkipDir // another module
			}
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil // tests may use what go.mod has
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		dir, why, allowed := ruleFor(path.Dir(rel))
		used[dir] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			switch {
			case imported == "C":
				t.Errorf("%s uses cgo, which users would need a compiler for", rel)
			case isStandard(imported), within(imported, allowed):
			case dir == "":
				t.Errorf("%s imports %s, and no rule says what this directory may import", rel, imported)
			default:
				t.Errorf("%s imports %s, which %s may not: %s", rel, imported, dir, why)
			}
			if imported == "github.com/spf13/viper" && rel != "cmd/sbactivator/config.go" {
				t.Errorf("%s imports viper: configuration has one shape and one reader, cmd/sbactivator/config.go", rel)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, rule := range rules {
		if !used[rule.dir] {
			t.Errorf("the rule for %s applies to nothing", rule.dir)
		}
	}
}

func ruleFor(dir string) (found, why string, allowed []string) {
	for _, rule := range rules {
		if len(rule.dir) > len(found) && within(dir, []string{rule.dir}) {
			found, why, allowed = rule.dir, rule.why, rule.allowed
		}
	}
	return found, why, allowed
}

// within tells whether path is one of the roots or below one.
func within(path string, roots []string) bool {
	for _, root := range roots {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// isStandard goes by the first element, as the go command does.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// What comes along: a package of pgx may have dependencies that pgx as a whole need not have.
func TestLinked(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"github.com/pgsbroker/sbroker":   "",
		"github.com/jackc/pgx/v5":        "the driver",
		"github.com/jackc/pgpassfile":    "pgx: passwords from .pgpass",
		"github.com/jackc/pgservicefile": "pgx: service files",
		"github.com/jackc/puddle/v2":     "pgx: its pool",
		"golang.org/x/sync":              "pgx: puddle's semaphore",
		"golang.org/x/text":              "pgx: passwords for SCRAM are normalised",
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./sbroker", "./activator")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for linked := range strings.FieldsSeq(string(out)) {
		if _, ok := allowed[linked]; !ok {
			t.Errorf("programs that import sbroker or activator get %s too", linked)
			allowed[linked] = "reported"
		}
	}
}
