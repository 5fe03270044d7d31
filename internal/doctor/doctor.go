// Package doctor examines a database in which sb is installed, as ssbdiagnose does SQL Server's: what is wrong, in plain
// words, and which statement mends it. The checks are the table in checks.go.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Severity says how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	Error   Severity = "error"   // something does not work
	Warning Severity = "warning" // something may stop working, or costs more than it should
	Advice  Severity = "advice"  // worth knowing
)

var severities = []Severity{Error, Warning, Advice}

// Finding is one thing that is wrong.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// What is one sentence or two that name the object.
	What string `json:"what"`
	// Mend is SQL to copy; what is no SQL stands in it as comments.
	Mend string `json:"mend"`
	// MendBy says who may run that, where it is not the role that asks.
	MendBy string `json:"mend_by,omitempty"`
	// Why says what it leads to.
	Why string `json:"why"`
}

// Report is what an examination has found.
type Report struct {
	Findings []Finding `json:"findings"` // errors first
	// Checks is how many were made; NotMade names those that need an admin of sb.
	Checks  int      `json:"checks"`
	NotMade []string `json:"not_made"`
}

// Options say how to examine. SchemaVersion has no default.
type Options struct {
	// SchemaVersion is the version of sb that the caller was built for.
	SchemaVersion int64
	// Patience is how long something may wait, or a transaction be open, before that is a finding; 0 is five minutes.
	Patience time.Duration
	// Handlers are those of the configuration, of an activator that serves queues without an activation procedure.
	Handlers []Handler
	// Skip names checks to leave out.
	Skip []string
	// Now is the client's clock; nil is time.Now.
	Now func() time.Time
}

// Handler says for which queue there is a handler, and which queue's name is most like that.
type Handler struct{ Queue, Nearest string }

// check is a row of the table of checks.
type check struct {
	name     string
	severity Severity
	// why says what a finding leads to, for people who meet it for the first time.
	why string
	// query returns a row of two texts, what and mend, for each finding. It may use @schema_version, @patience,
	// @client_time, @handled, @nearest and, with roles, @role and @subjects.
	query string
	// roles, where there is one, returns rows of a role and an array of texts; the query is then run as each of them.
	roles string
	// by is who may run what is offered; "": what is SQL calls verbs of sb.
	by string
	// adminOnly is for what looks wrong to those who do not see everything.
	adminOnly bool
}

// Names returns the names of all checks, in the order of the table.
func Names() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Explain returns what a finding of the check leads to.
func Explain(name string) string {
	for _, c := range checks {
		if c.name == name {
			return c.why
		}
	}
	return ""
}

// Run makes the checks, each in a savepoint that is rolled back, in the transaction tx. That an admin of sb asks is for
// the caller to know.
func Run(ctx context.Context, tx pgx.Tx, isAdmin bool, opts Options) (*Report, error) {
	for _, name := range opts.Skip {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("there is no check %q", name)
		}
	}
	if opts.Patience == 0 {
		opts.Patience = 5 * time.Minute
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	r := &Report{Findings: []Finding{}, NotMade: []string{}}
	var asks asker
	err := tx.QueryRow(ctx, `
select r.rolsuper, pg_catalog.pg_has_role(r.oid, d.datdba, 'usage'), pg_catalog.pg_has_role(r.oid, n.nspowner, 'usage')
  from pg_catalog.pg_roles as r
  join pg_catalog.pg_database as d on d.datname = pg_catalog.current_database()
  join pg_catalog.pg_namespace as n on n.nspname = 'sb'
 where r.rolname = current_user`).Scan(&asks.isSuperuser, &asks.ownsDatabase, &asks.ownsSB)
	if err != nil {
		return nil, err
	}
	asks.isAdmin = isAdmin
	isOlder := false // then some look for what is not there yet
	for _, c := range checks {
		switch {
		case slices.Contains(opts.Skip, c.name):
			continue
		case c.adminOnly && !isAdmin:
			r.NotMade = append(r.NotMade, c.name)
			continue
		}
		found, err := c.run(ctx, tx, opts)
		if err != nil {
			if ctx.Err() != nil || tx.Conn().IsClosed() {
				return nil, err
			}
			if isOlder {
				continue
			}
			// One that takes too long, or finds a database it does not know, must not hide what the others find.
			found = []Finding{{What: "This could not be checked: " + message(err) + ".", Mend: "-- nothing to copy"}}
			c.severity = Warning
		}
		isOlder = isOlder || c.name == schemaOlder && len(found) > 0
		for _, f := range found {
			f.Check, f.Severity, f.Why, f.MendBy = c.name, c.severity, c.why, asks.other(c.by, f.Mend)
			r.Findings = append(r.Findings, f)
		}
		r.Checks++
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
	})
	return r, nil
}

// asker is what the role that asks may do.
type asker struct{ isSuperuser, isAdmin, ownsDatabase, ownsSB bool }

// other returns who may run the mend, "" when that is the asker, or when there is nothing to run.
func (a asker) other(by, mend string) string {
	isSQL := false
	for line := range strings.Lines(mend) {
		isSQL = isSQL || !strings.HasPrefix(line, "--")
	}
	switch {
	case !isSQL, a.isSuperuser,
		by == "" && a.isAdmin,
		by == databaseOwner && a.ownsDatabase,
		by == sbOwner && a.ownsSB:
		return ""
	case by == "":
		return ofBroker
	default:
		return by
	}
}

// errUndo ends a savepoint that has done its work.
var errUndo = errors.New("undo")

func (c check) run(ctx context.Context, tx pgx.Tx, opts Options) (found []Finding, err error) {
	handled, nearest := []string{}, []string{}
	for _, h := range opts.Handlers {
		handled, nearest = append(handled, h.Queue), append(nearest, h.Nearest)
	}
	args := pgx.NamedArgs{
		"handled":        handled,
		"nearest":        nearest,
		"schema_version": opts.SchemaVersion,
		"patience":       fmt.Sprintf("%f seconds", opts.Patience.Seconds()),
		"client_time":    opts.Now(),
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if c.roles == "" {
			if found, err = findings(ctx, tx, c.query, args); err != nil {
				return err
			}
			return errUndo
		}
		rows, err := tx.Query(ctx, c.roles, args)
		if err != nil {
			return err
		}
		type asRole struct {
			Role     string
			Subjects []string
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[asRole])
		if err != nil {
			return err
		}
		for _, as := range list {
			if _, err := tx.Exec(ctx, `select pg_catalog.set_config('role', $1::text, true)`, as.Role); err != nil {
				return err
			}
			args["role"], args["subjects"] = as.Role, as.Subjects
			more, err := findings(ctx, tx, c.query, args)
			if err != nil {
				return err
			}
			found = append(found, more...)
			if _, err := tx.Exec(ctx, `reset role`); err != nil {
				return err
			}
		}
		return errUndo
	})
	if errors.Is(err, errUndo) {
		err = nil
	}
	return found, err
}

func findings(ctx context.Context, tx pgx.Tx, query string, args pgx.NamedArgs) ([]Finding, error) {
	rows, err := tx.Query(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Finding, err error) {
		err = row.Scan(&f.What, &f.Mend)
		f.Mend = copyable(f.Mend)
		return f, err
	})
}

// copyable makes SQL that one can see and copy: what cannot be shown stands in literals, as part of a name.
func copyable(sql string) string {
	var b strings.Builder
	for _, r := range sql {
		switch {
		case r == '\x1e':
			b.WriteByte('\n')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "' || chr(%d) || '", r)
		}
	}
	return b.String()
}

// message is what the server has said, without its decorations.
func message(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Message
	}
	return err.Error()
}
