package sbroker_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The client depends on pgx and the standard library only: applications link it.
func TestImports(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			first, _, _ := strings.Cut(name, "/")
			switch {
			case !strings.Contains(first, "."): // standard library
			case strings.HasPrefix(name, "github.com/jackc/pgx/v5"):
			case name == "github.com/pgsbroker/sbroker/sbroker":
			default:
				t.Errorf("%s imports %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
