// Package schematest tests the schema as a whole: that it is what testdata says it is, that sql/ and the migrations
// make the same of it, and that it keeps the rules that the catalogs can be asked about.
package schematest

import (
	_ "embed"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

var update = flag.Bool("update", false, "write the golden files in testdata instead of comparing with them")

func TestMain(m *testing.M) { pgtest.Main(m) }

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	//go:embed api.sql
	apiQuery string
	//go:embed schema.sql
	schemaQuery string
	//go:embed fingerprint.sql
	fingerprintQuery string
)

// The public interface: a change here is a change for every caller. Names and what they stand for are only added.
func TestAPI(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# The public interface of schema sb; go test ./internal/schematest -update writes this file.\n")
	section := ""
	for _, row := range pgtest.CollectRows(t, pgtest.New(t).Conn(t), apiQuery) {
		if row[0] != section {
			section = row[0].(string)
			fmt.Fprintf(&b, "\n## %s\n", section)
		}
		fmt.Fprintln(&b, row[1])
	}
	b.WriteString("\n## errors (number in SQL Server)\n")
	errors, err := csv.NewReader(strings.NewReader(read(t, "sql/errors.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range errors[1:] {
		fmt.Fprintf(&b, "%s %s (%s)\n", row[0], row[1], row[4])
	}
	golden(t, "testdata/api.golden.txt", b.String())
}

// The schema beneath: what migrating an empty database leads to.
func TestSchema(t *testing.T) {
	t.Parallel()
	blocks := pgtest.Strings(t, pgtest.New(t).Conn(t), schemaQuery)
	golden(t, "testdata/schema.golden.sql",
		"-- What the migrations make, from the catalogs; go test ./internal/schematest -update writes this file.\n\n"+
			strings.Join(blocks, "\n"))
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(path)), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(read(t, path), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got), if that is meant: go test ./internal/schematest -update\n%s", path, diff)
	}
}
