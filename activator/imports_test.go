package activator_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The package depends on the client, pgx and the standard library only, and on what needs nothing but the latter: services
// link it.
func TestImports(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(name, "/")
			switch {
			case !strings.Contains(first, "."): // standard library
			case strings.HasPrefix(name, "github.com/jackc/pgx/v5"):
			case name == "github.com/pgsbroker/sbroker/sbroker", name == "github.com/pgsbroker/sbroker/internal/nearest":
			default:
				t.Errorf("%s imports %s", path, name)
			}
		}
	}
}
