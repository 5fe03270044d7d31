// Package sectest holds tests of who may do what, and of what an ill-disposed user can and cannot bring about.
package sectest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// superuser runs statements as a superuser, who is needed for memberships, event triggers and the like.
func superuser(t *testing.T, db *pgtest.DB, statements ...string) {
	t.Helper()
	conn := db.Superuser(t)
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// try runs statements without arguments in a transaction that is rolled back, and returns the SQLSTATE, "" for
// success.
func try(t *testing.T, s *pgtest.Session, sql string) (code string, err error) {
	t.Helper()
	_, err = s.Conn.PgConn().Exec(t.Context(), "begin; "+sql+"; rollback").ReadAll()
	if err != nil {
		s.Rollback()
	}
	return pgtest.SQLState(err), err
}

func wantRows(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantValue(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
