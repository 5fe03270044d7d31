package schematest

import (
	"os"
	"strings"
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// falsePositives are complaints of plpgsql_check that are wrong, as "function: beginning of the message", with the
// reason. One that no longer comes must go.
var falsePositives = map[string]string{
	"sb_internal._lock_conversations: control reached end": "an endless loop, left by return",
	"sb_internal._lock_group_of: control reached end":      "an endless loop, left by return",
	"sb_internal._visible: control reached end":            "a case that returns in every branch, and raises without one",

	"sb_internal._make_state_table: text type variable is not sanitized":     "runs with the rights of the caller, whose own columns these are",
	"sb_internal._make_state_table: routine is marked as VOLATILE":           "the dynamic statement creates a table",
	"sb_internal._run_validator: text type variable is not sanitized":        "the validator's name was quoted when it was set",
	"sb_internal._run_validator: routine is marked as VOLATILE":              "a validator may be volatile",
	"sb_internal._drop_stale_sequences: text type variable is not sanitized": "a list of regclass, whose text is quoted",
	"sb_internal._sync_privileges: text type variable is not sanitized":      "lists of regprocedure and regclass, whose text is quoted",
}

// plpgsql looks at a statement only when it is reached; plpgsql_check looks at all of them.
func TestPlpgsqlCheck(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	super := db.Superuser(t)
	if len(pgtest.Strings(t, super, "select name from pg_available_extensions where name = 'plpgsql_check'")) == 0 {
		const missing = "the server has no plpgsql_check (Debian: postgresql-15-plpgsql-check)"
		version := pgtest.Strings(t, super, "show server_version_num")[0]
		if os.Getenv("CI") == "true" && strings.HasPrefix(version, "15") {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	exec(t, super, "create extension plpgsql_check schema public")
	rows := pgtest.CollectRows(t, super, `
		select p.oid::regprocedure::text, c.level, c.message,
		       concat_ws(' | ', 'line ' || c.lineno, c.statement, c.detail, c.hint, c.context, c.query)
		  from pg_proc as p
		  left join pg_trigger as t on t.tgfoid = p.oid
		 cross join lateral public.plpgsql_check_function_tb(p.oid, coalesce(t.tgrelid, 0),
		         fatal_errors => false, other_warnings => true, extra_warnings => true,
		         performance_warnings => true, security_warnings => true) as c
		 where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
		   and p.prolang = (select l.oid from pg_language as l where l.lanname = 'plpgsql')
		 order by 1, c.lineno`)
	used := map[string]bool{}
	for _, row := range rows {
		function, level, message, rest := row[0].(string), row[1].(string), row[2].(string), row[3].(string)
		name, _, _ := strings.Cut(function, "(")
		excused := false
		for known := range falsePositives {
			if of, beginning, _ := strings.Cut(known, ": "); of == name && strings.HasPrefix(message, beginning) {
				excused, used[known] = true, true
			}
		}
		if !excused {
			t.Errorf("%s: %s: %s (%s)", function, level, message, rest)
		}
	}
	for known, reason := range falsePositives {
		if !used[known] {
			t.Errorf("no longer complained about: %q (%s)", known, reason)
		}
	}
}
