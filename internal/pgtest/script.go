package pgtest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// RunScript runs a file of statements, each in a transaction of its own unless it says otherwise, and returns the rows of
// the last one as lines. A statement ends with a semicolon at the end of a line that is not between dollar quotes.
func RunScript(t testing.TB, conn *pgx.Conn, text string) string {
	t.Helper()
	var statement string
	var last []*pgconn.Result
	for line := range strings.Lines(text) {
		statement += line
		if !strings.HasSuffix(line, ";\n") || strings.Count(statement, "$$")%2 == 1 {
			continue
		}
		results, err := conn.PgConn().Exec(t.Context(), statement).ReadAll()
		if err != nil {
			t.Fatal(describe("", statement, err))
		}
		statement, last = "", results
	}
	var b strings.Builder
	for _, row := range last[len(last)-1].Rows {
		b.Write(append(bytes.Join(row, []byte("|")), '\n'))
	}
	return b.String()
}
