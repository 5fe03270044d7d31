package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/internal/migrate"
	"github.com/pgsbroker/sbroker/internal/screen"
)

// lookTimeout bounds every statement of the commands that look into a database: they are there for bad days.
const lookTimeout = 30 * time.Second

// openLook connects as configured to a database in which there is something to look at.
func openLook(cmd *cobra.Command) (*pgx.Conn, error) {
	config, err := loadConfig(cmd)
	if err != nil {
		return nil, err
	}
	return connectLook(cmd.Context(), config.Database.URL)
}

func connectLook(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := migrate.ParseURL(url)
	if err != nil {
		return nil, err
	}
	// Nothing is prepared, so that a pooler in transaction mode does as well.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "sbactivator-look" // not as an activator's, which are counted
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	var installed, allowed bool
	var role string
	err = conn.QueryRow(ctx, `
select current_user::text, n.oid is not null, coalesce(pg_catalog.has_schema_privilege(n.oid, 'usage'), false)
  from (select pg_catalog.to_regnamespace('sb')) as n (oid)`).Scan(&role, &installed, &allowed)
	switch {
	case err != nil:
	case !installed:
		err = configErrorf("sb is not installed in this database; run sbactivator migrate up")
	case !allowed:
		err = configErrorf("role %s has no rights in sb; see sb.grant_admin, sb.grant_receive", screen.Clean(role))
	default:
		return conn, nil
	}
	closeLook(conn)
	return nil, err
}

func closeLook(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// withLook connects and calls fn.
func withLook(cmd *cobra.Command, fn func(ctx context.Context, conn *pgx.Conn) error) error {
	conn, err := openLook(cmd)
	if err != nil {
		return err
	}
	defer closeLook(conn)
	return fn(cmd.Context(), conn)
}

// oneArg is for commands with one argument, which another command lists.
func oneArg(name, list string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%q needs a %s, as %s %s shows them", cmd.CommandPath(), name, cmd.Root().Name(), list)
		}
		return cobra.ExactArgs(1)(cmd, args)
	}
}

// inSnapshot calls fn in a transaction that sees one moment. Not a read-only one: what counts rollbacks may have to
// forget numbers that a restore has brought along.
func inSnapshot(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	return inTx(ctx, conn, pgx.RepeatableRead, fn)
}

func inTx(ctx context.Context, conn *pgx.Conn, level pgx.TxIsoLevel, fn func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
		timeout := strconv.FormatInt(lookTimeout.Milliseconds(), 10)
		// The planner takes the views for dearer than they are: compiling the plans would take longer than running them.
		_, err := tx.Exec(ctx, `
select pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('search_path', 'pg_catalog', true),
       pg_catalog.set_config('jit', 'off', true)`, timeout)
		if err != nil {
			return err
		}
		return fn(tx)
	})
	if err = plainError(err); hasSQLState(err, "42703") || hasSQLState(err, "42P01") || hasSQLState(err, "42883") {
		return fmt.Errorf("%w; sb may be older here than this program: run sbactivator migrate up", err)
	}
	return err
}

// plainError says what the server has said, with its hint, as one line of plain text.
func plainError(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return err
	}
	text := pgErr.Message
	if pgErr.Hint != "" {
		text += " (" + pgErr.Hint + ")"
	}
	return &serverError{screen.Clean(text), err}
}

func hasSQLState(err error, code string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == code
}

type serverError struct {
	text  string
	cause error
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.cause }

// rowsOf runs a query and makes structs of its rows, matching the columns to their fields by name.
func rowsOf[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if list == nil {
		list = []T{} // [] in JSON
	}
	return list, err
}

// rowOf is rowsOf for a query that has one row.
func rowOf[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) (row T, err error) {
	rows, err := rowsOf[T](ctx, tx, sql, args...)
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("%d rows instead of one", len(rows))
	}
	if err != nil {
		return row, err
	}
	return rows[0], nil
}

// page is what a command prints. It is written at once, so that there is one place to notice that nobody reads it.
type page struct {
	strings.Builder
	color bool
	width int // 0 is no limit
}

func newPage(out io.Writer) *page {
	return &page{color: screen.HasColor(out), width: screen.Columns(out)}
}

// line adds a line of text, cut to the width, with a colour if that is not empty.
func (p *page) line(color, format string, args ...any) {
	text := screen.Fit(screen.Clean(fmt.Sprintf(format, args...)), p.width)
	p.WriteString(screen.Paint(p.color, color, text) + "\n")
}

// text adds a text, wrapped at the width.
func (p *page) text(color, indent, text string) {
	for line := range strings.Lines(screen.Wrap(screen.Clean(text), indent, p.width)) {
		p.WriteString(screen.Paint(p.color, color, strings.TrimSuffix(line, "\n")) + "\n")
	}
}

func (p *page) table(rows [][]screen.Cell, columns ...screen.Column) {
	t := screen.Table{Columns: columns, Rows: rows, Color: p.color, Width: p.width}
	p.WriteString(t.String())
}

func cells(texts ...string) []screen.Cell {
	row := make([]screen.Cell, len(texts))
	for i, text := range texts {
		row[i].Text = text
	}
	return row
}

// printer is what a report can do.
type printer interface{ print(p *page) }

// show prints a report, for people or as JSON.
func show(cmd *cobra.Command, asJSON bool, report printer) error {
	out := cmd.OutOrStdout()
	if asJSON {
		return writeJSON(out, report, "  ")
	}
	p := newPage(out)
	report.print(p)
	_, err := io.WriteString(out, p.String())
	return err
}

func writeJSON(out io.Writer, report any, indent string) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(report)
}

func addJSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON, whose keys stay as they are (docs/operations.md)")
}

// span is a time in seconds, in the two units that say most; "-" for none.
func span(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	s := max(0, *seconds)
	switch n := int64(s); {
	case s < 10:
		return fmt.Sprintf("%.1fs", s)
	case n < 60:
		return fmt.Sprintf("%ds", n)
	case n < 3600:
		return fmt.Sprintf("%dm%02ds", n/60, n%60)
	case n < 86400:
		return fmt.Sprintf("%dh%02dm", n/3600, n/60%60)
	default:
		return fmt.Sprintf("%dd%02dh", n/86400, n/3600%24)
	}
}

// count is a number, with a mark when it is only a lower bound or an estimate.
func count(n int64, mark string) string { return mark + strconv.FormatInt(n, 10) }
