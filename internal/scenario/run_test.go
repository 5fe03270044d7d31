package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// patience is how long anything may take. On a machine with many things to do a long time means never.
const patience = time.Minute

// null stands for SQL's null, which no text is equal to.
var null = new(string)

// actor is a session of a scenario.
type actor struct {
	*pgtest.Session
	name, role string
	working    chan outcome // what a statement that was started comes to; nil when it is idle
}

// outcome is what became of a statement.
type outcome struct {
	rows [][]*string
	tag  string // of the last command
	err  error
}

// runner plays a script.
type runner struct {
	t      testing.TB
	db     *pgtest.DB
	script *script
	update bool

	admin  *pgx.Conn // looks at the others
	actors map[string]*actor
	vars   map[string]string
	edits  map[*expectation][]string // lines to be written in its place
}

// play runs a script. The error begins with the file and the line. With update, rows and errors that differ are written into
// the file instead.
func play(t testing.TB, db *pgtest.DB, s *script, update bool) error {
	r := &runner{
		t: t, db: db, script: s, update: update, admin: db.Superuser(t),
		actors: map[string]*actor{}, vars: map[string]string{"owner": db.Owner}, edits: map[*expectation][]string{},
	}
	r.connect("setup", db.Owner)
	if err := r.play(s.steps); err != nil {
		return err
	}
	return r.write()
}

func (r *runner) play(steps []*step) error {
	for _, s := range steps {
		since := time.Now()
		err := r.step(s)
		if took := time.Since(since); took > time.Second && testing.Verbose() && s.verb != "repeat" {
			r.t.Logf("%s:%d took %.1f s", r.script.path, s.line, took.Seconds())
		}
		if err != nil {
			if s.verb == "repeat" {
				return err // says where by itself
			}
			return fmt.Errorf("%s:%d: %w", r.script.path, s.line, err)
		}
	}
	return nil
}

func (r *runner) connect(name, role string) {
	r.actors[name] = &actor{Session: r.db.SessionAs(r.t, name, role), name: name, role: role}
}

func (r *runner) step(s *step) error {
	switch s.verb {
	case "role":
		for _, name := range strings.Fields(s.argument) {
			r.vars[name] = r.db.CreateRole(r.t, name)
		}
	case "session":
		role := r.db.Owner
		if s.role != "" {
			role = r.vars[s.role]
		}
		for _, name := range s.sessions {
			r.connect(name, role)
		}
	case "include":
		sql, err := os.ReadFile(filepath.Join(filepath.Dir(r.script.path), s.argument))
		if err != nil {
			return err
		}
		if o := r.begin(r.actors["setup"], string(sql)); o.err != nil {
			return fmt.Errorf("%s: %s", s.argument, show(o))
		}
	case "repeat":
		for i := range s.times {
			if err := r.play(s.body); err != nil {
				return fmt.Errorf("%w\nround %d", err, i+1)
			}
		}
	case "pass":
		return r.pass(s.argument)
	case "kill", "cancel", "disconnect", "connect":
		for _, name := range s.sessions {
			if err := r.disturb(s.verb, r.actors[name]); err != nil {
				return err
			}
		}
	case "notified":
		for _, name := range s.sessions {
			got, err := r.notifications(r.actors[name])
			if err := r.compare(s, outcome{rows: got, err: err}); err != nil {
				return err
			}
		}
	case "resume":
		for _, name := range s.sessions {
			if err := r.compare(s, r.wait(r.actors[name])); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	case "sql":
		return r.statement(s)
	}
	return nil
}

// begin starts a statement and waits for its end.
func (r *runner) begin(a *actor, sql string) outcome {
	r.start(a, sql)
	return r.wait(a)
}

// start starts a statement. One string of SQL goes to the server as it is, so it may hold several statements.
func (r *runner) start(a *actor, sql string) {
	working := make(chan outcome, 1)
	a.working = working
	a.Go(func(ctx context.Context, conn *pgx.Conn) error {
		results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		o := outcome{err: err}
		for _, result := range results {
			if result.CommandTag.String() != "" {
				o.tag = result.CommandTag.String()
			}
			if result.FieldDescriptions != nil {
				o.rows = texts(result.Rows)
			}
		}
		working <- o
		return nil
	})
}

func texts(rows [][][]byte) [][]*string {
	all := [][]*string{}
	for _, row := range rows {
		var cells []*string
		for _, cell := range row {
			if cell == nil {
				cells = append(cells, null)
			} else {
				text := string(bytes.Clone(cell))
				cells = append(cells, &text)
			}
		}
		all = append(all, cells)
	}
	return all
}

// wait returns what the statement that was started comes to.
func (r *runner) wait(a *actor) outcome {
	select {
	case o := <-a.working:
		a.working = nil
		return o
	case <-time.After(r.script.patience):
		return outcome{err: fmt.Errorf("%s is still at work after %v: %s", a.name, r.script.patience, r.activity(a))}
	}
}

// activity says what a session is busy with, and whom it waits for.
func (r *runner) activity(a *actor) string {
	rows := pgtest.Strings(r.t, r.admin, `
select a.state, a.wait_event_type, a.wait_event, (
         select string_agg(b.application_name, ', ')
           from pg_catalog.pg_stat_activity as b
          where b.pid = any (pg_catalog.pg_blocking_pids(a.pid)))
  from pg_catalog.pg_stat_activity as a
 where a.pid = $1::integer`, a.PID())
	return "state|wait|event|blocked by = " + strings.Join(rows, "; ")
}

func (r *runner) statement(s *step) error {
	for _, name := range s.sessions {
		a := r.actors[name]
		sql, err := r.expand(s.sql)
		if err != nil {
			return err
		}
		if s.start != "" {
			r.start(a, sql)
			if err := r.started(s, a); err != nil {
				return err
			}
			continue
		}
		o := r.begin(a, sql)
		for deadline := time.Now().Add(s.within); s.within > 0 && time.Now().Before(deadline) && r.differs(s, o) != nil; o = r.begin(a, sql) {
			time.Sleep(20 * time.Millisecond)
		}
		if err := r.compare(s, o); err != nil {
			return err
		}
		if s.captures == nil {
			continue
		}
		if len(o.rows) != 1 || len(o.rows[0]) != len(s.captures) {
			return fmt.Errorf("%d rows cannot be captured by %q", len(o.rows), s.captures)
		}
		for i, name := range s.captures {
			if o.rows[0][i] == null {
				return fmt.Errorf("$%s would be null", name)
			}
			r.vars[name] = *o.rows[0][i]
		}
	}
	return nil
}

// started returns when a statement that was started is where the script says it stops: behind a lock of others, or asleep
// in a receive that waits.
func (r *runner) started(s *step, a *actor) error {
	var query string
	args := []any{a.PID()}
	switch s.start {
	case "runs":
		return nil
	case "waits":
		query = `select a.state = 'active' and coalesce(a.wait_event = 'PgSleep', false) from pg_catalog.pg_stat_activity as a where a.pid = $1::integer`
	case "blocks":
		var pids []int32
		for _, name := range s.blockers {
			pids = append(pids, int32(r.actors[name].PID()))
		}
		query, args = `select $2::integer[] <@ pg_catalog.pg_blocking_pids($1::integer)`, append(args, pids)
	}
	for deadline := time.Now().Add(r.script.patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var is bool
		if err := r.admin.QueryRow(r.t.Context(), query, args...).Scan(&is); err != nil {
			return err
		}
		if is {
			return nil
		}
		if len(a.working) > 0 {
			return fmt.Errorf("%s does not %s: %s", a.name, strings.TrimSuffix(s.start, "s"), show(<-a.working))
		}
	}
	return fmt.Errorf("%s does not %s: %s", a.name, strings.TrimSuffix(s.start, "s"), r.activity(a))
}

// pass lets time go by for everything that is dated: the clock of the server cannot be moved, so what is written in the
// tables moves the other way. A negative interval is a clock that steps back. What an open transaction has locked stays as
// it is, so that nobody is waited for.
func (r *runner) pass(interval string) error {
	_, err := r.admin.Exec(r.t.Context(), `
do $$
declare
  c record;
begin
  for c in
    select a.attrelid::regclass as relation, string_agg(format('%1$I = %1$I - %2$L::interval', a.attname, `+quote(interval)+`), ', ') as changes
      from pg_catalog.pg_attribute as a
      join pg_catalog.pg_class as t on t.oid = a.attrelid
     where t.relnamespace = 'sb_internal'::regnamespace
       and t.relkind = 'r'
       and a.atttypid = 'timestamptz'::regtype
       and not a.attisdropped
     group by a.attrelid
  loop
    execute format('update %1$s as x set %2$s where x.ctid = any (array(select y.ctid from %1$s as y for no key update skip locked))', c.relation, c.changes);
  end loop;
end $$`)
	return err
}

func (r *runner) disturb(how string, a *actor) error {
	var done bool
	switch how {
	case "cancel":
		if err := r.admin.QueryRow(r.t.Context(), "select pg_catalog.pg_cancel_backend($1::integer)", a.PID()).Scan(&done); err != nil {
			return err
		}
	case "kill":
		if err := r.admin.QueryRow(r.t.Context(), "select pg_catalog.pg_terminate_backend($1::integer, 60000)", a.PID()).Scan(&done); err != nil {
			return err
		}
	case "disconnect": // without a word
		if err := a.Conn.PgConn().Conn().Close(); err != nil {
			return err
		}
		_, _ = a.Conn.Exec(r.t.Context(), "") // the driver learns of it
		gone := func() bool {
			return pgtest.Strings(r.t, r.admin, "select count(*) from pg_catalog.pg_stat_activity where pid = $1::integer", a.PID())[0] == "0"
		}
		pgtest.Eventually(r.t, r.script.patience, gone)
		done = true
	case "connect":
		r.connect(a.name, a.role)
		done = true
	}
	if !done {
		return fmt.Errorf("%s could not be %sed", a.name, how)
	}
	return nil
}

// notifications returns what the session has been notified of since it was last asked. What was committed before is
// complete: the mark that is sent last comes last.
func (r *runner) notifications(a *actor) ([][]*string, error) {
	const mark = "scenario_mark"
	for _, sql := range []string{"listen " + mark, "notify " + mark, "unlisten " + mark} {
		if o := r.begin(a, sql); o.err != nil {
			return nil, o.err
		}
	}
	rows := [][]*string{}
	ctx, cancel := context.WithTimeout(r.t.Context(), r.script.patience)
	defer cancel()
	for {
		n, err := a.Conn.WaitForNotification(ctx)
		switch {
		case err != nil:
			return nil, err
		case n.Channel == mark:
			return rows, nil
		}
		rows = append(rows, []*string{&n.Channel, &n.Payload})
	}
}

var (
	inSQL  = regexp.MustCompile(`"\$[a-z]\w*"|\$[a-z]\w*\$?`)
	uuid   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	inText = regexp.MustCompile(strings.Trim(uuid.String(), "^$"))
	date   = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
	digit  = regexp.MustCompile(`^-?\d+$`)

	// reserved is what means something else as a cell than itself.
	reserved = regexp.MustCompile(`^(|null|\?|<(any|uuid|int|time)>|->.*|[~"].*)$`)
)

// expand puts the values of variables into SQL: $x as a literal, "$x" as an identifier. $x$ is a dollar quote.
func (r *runner) expand(sql string) (string, error) {
	var err error
	sql = inSQL.ReplaceAllStringFunc(sql, func(found string) string {
		if strings.HasPrefix(found, "$") && strings.HasSuffix(found, "$") {
			return found
		}
		name := strings.Trim(found, `"$`)
		value, ok := r.vars[name]
		switch {
		case !ok:
			err = fmt.Errorf("there is no variable $%s", name)
		case found[0] == '"':
			return pgx.Identifier{value}.Sanitize()
		}
		return quote(value)
	})
	return sql, err
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// expandText puts the values of variables into an expected text, and leaves alone what is none.
func (r *runner) expandText(text string) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		if value, ok := r.vars[found[1:]]; ok {
			return value
		}
		return found
	})
}

// compare ends in an error unless the outcome is what was expected, or the expectation could be mended.
func (r *runner) compare(s *step, got outcome) error {
	err := r.differs(s, got)
	var pgErr *pgconn.PgError
	if err == nil || !r.update || s.want == nil || got.err != nil && !errors.As(got.err, &pgErr) {
		return err
	}
	if got.err != nil {
		r.edits[s.want] = []string{strings.TrimSpace("! " + pgErr.Code + " " + r.message(pgErr.Message))}
		return nil
	}
	r.edits[s.want] = r.render(s.want, got.rows)
	return nil
}

// message writes an error's message so that it matches the next one too: with variables, and not beyond a uuid that none holds.
func (r *runner) message(text string) string {
	for name, value := range r.vars {
		if len(value) >= len("sb_owner") { // "1" would be found everywhere
			text = strings.ReplaceAll(text, value, "$"+name)
		}
	}
	if at := inText.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return text
}

// differs says in what an outcome is not what was expected.
func (r *runner) differs(s *step, got outcome) error {
	want := s.want
	if want == nil {
		want = &expectation{}
	}
	var pgErr *pgconn.PgError
	isServers := errors.As(got.err, &pgErr)
	endedBy := strings.ToLower(strings.TrimRight(strings.TrimSpace(s.sql), ";"))
	rolledBack := endedBy == "commit" && got.tag == "ROLLBACK"
	switch {
	case want.code == "lost":
		if got.err != nil && (!isServers || pgErr.Severity == "FATAL") {
			return nil
		}
	case want.code != "":
		if isServers && pgErr.Code == want.code && strings.Contains(pgErr.Message, r.expandText(want.text)) {
			return nil
		}
	case got.err != nil || rolledBack != want.rolledBack:
	case s.want == nil || rolledBack:
		return nil
	default:
		if r.sameRows(want, got.rows) {
			return nil
		}
	}
	var lines []string
	if want.line > 0 {
		lines = r.script.lines[want.line-1 : want.end]
	} else {
		lines = []string{"success"}
	}
	return fmt.Errorf("%s\nwant:\n  %s\ngot:\n  %s", firstLine(s.sql), strings.Join(lines, "\n  "),
		strings.ReplaceAll(strings.Join(r.renderOutcome(want, got), "\n"), "\n", "\n  "))
}

func firstLine(sql string) string {
	first, _, more := strings.Cut(sql, "\n")
	if more {
		first += " …"
	}
	return first
}

func (r *runner) sameRows(want *expectation, got [][]*string) bool {
	if len(want.rows) != len(got) {
		return false
	}
	if !want.unordered {
		for i := range got {
			if !r.sameRow(want.rows[i], got[i]) {
				return false
			}
		}
		return true
	}
	left := slices.Clone(got)
	for _, row := range want.rows {
		i := slices.IndexFunc(left, func(row2 []*string) bool { return r.sameRow(row, row2) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

func (r *runner) sameRow(want []string, got []*string) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range got {
		if !r.sameCell(want[i], got[i]) {
			return false
		}
	}
	return true
}

// sameCell compares one value, and captures it where the cell says so.
func (r *runner) sameCell(want string, got *string) bool {
	if got == null {
		return want == "null" || want == "<any>"
	}
	switch {
	case want == "null" || want == "?":
		return false
	case want == "<any>":
		return true
	case want == "<uuid>":
		return uuid.MatchString(*got)
	case want == "<int>":
		return digit.MatchString(*got)
	case want == "<time>":
		return date.MatchString(*got)
	case strings.HasPrefix(want, "->"):
		r.vars[strings.TrimLeft(want, "-> $")] = *got
		return true
	case strings.HasPrefix(want, "~"):
		pattern, err := regexp.Compile(strings.TrimSpace(want[1:]))
		return err == nil && pattern.MatchString(*got)
	case strings.HasPrefix(want, `"`):
		text, err := strconv.Unquote(want)
		return err == nil && text == *got
	}
	return r.expandText(want) == *got
}

// renderOutcome shows an outcome as it would be written into the script.
func (r *runner) renderOutcome(want *expectation, got outcome) []string {
	switch {
	case got.err != nil:
		return []string{show(got)}
	case got.tag == "ROLLBACK" && len(got.rows) == 0:
		return []string{"(rolled back)"}
	}
	return r.render(want, got.rows)
}

// show shows an outcome for people.
func show(o outcome) string {
	var pgErr *pgconn.PgError
	switch {
	case errors.As(o.err, &pgErr):
		text := "! " + pgErr.Code + " " + pgErr.Message
		for _, more := range []string{pgErr.Detail, pgErr.Hint, pgErr.Where} {
			if more != "" {
				text += "\n  " + more
			}
		}
		return text
	case o.err != nil:
		return "! lost: " + o.err.Error()
	}
	return fmt.Sprintf("%s, %d rows", o.tag, len(o.rows))
}

// render writes rows as lines of a script. What is written now and matches is kept.
func (r *runner) render(want *expectation, rows [][]*string) []string {
	if len(rows) == 0 {
		return []string{"(no rows)"}
	}
	var lines []string
	if want.unordered {
		lines = append(lines, "(unordered)")
	}
	var (
		table  [][]string
		widths []int
	)
	for i, row := range rows {
		var cells []string
		for j, value := range row {
			cell := r.cell(value)
			if i < len(want.rows) && j < len(want.rows[i]) && r.sameCell(want.rows[i][j], value) {
				cell = want.rows[i][j]
			}
			cells = append(cells, cell)
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], len([]rune(cell)))
		}
		table = append(table, cells)
	}
	for _, row := range table {
		line := "|"
		for j, cell := range row {
			if j == len(row)-1 {
				line += " " + cell
			} else {
				line += fmt.Sprintf(" %-*s |", widths[j], cell)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// cell writes a value so that it matches itself: by the variable that holds it, by what it is when it will be another next
// time, as it is, or in quotes.
func (r *runner) cell(value *string) string {
	if value == null {
		return "null"
	}
	text := *value
	for name, held := range r.vars {
		if held == text && uuid.MatchString(text) {
			return "$" + name
		}
	}
	switch {
	case uuid.MatchString(text):
		return "<uuid>"
	case date.MatchString(text):
		return "<time>"
	case reserved.MatchString(text), strings.TrimSpace(text) != text, strings.ContainsAny(text, "|$\n\r\t"):
		return strconv.Quote(text)
	}
	return text
}

// write writes what has changed into the script's file.
func (r *runner) write() error {
	if len(r.edits) == 0 {
		return nil
	}
	expectations := make([]*expectation, 0, len(r.edits))
	for e := range r.edits {
		expectations = append(expectations, e)
	}
	slices.SortFunc(expectations, func(a, b *expectation) int { return b.line - a.line }) // from the end, so that lines keep their numbers
	lines := slices.Clone(r.script.lines)
	for _, e := range expectations {
		lines = slices.Replace(lines, e.line-1, e.end, r.edits[e]...)
	}
	return os.WriteFile(r.script.path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}
