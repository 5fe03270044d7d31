// Package migrate brings the schema of sb up, down and out of trouble, with golang-migrate underneath.
//
// golang-migrate is kept away from three of its edges. Its version table needs a schema that exists
// and that a plain owner may write to, so sb_internal is created first and holds it. A file that fails
// is rolled back as a whole but leaves the version dirty, so every file stamps itself into
// sb_internal.meta in its own transaction, and Repair believes that table. And it reads ahead, so it is
// given one step at a time.
//
// All but Status hold a session-level advisory lock meanwhile: connect directly, not through a
// pooler in transaction mode.
package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	gomigrate "github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	driver "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pgsbroker/sbroker/migrations"
)

// lockKey is "sb_migra" read as a number: above the 32 bits from which golang-migrate makes the keys of
// its own advisory locks.
const lockKey int64 = 8314312785603818081

// lockPoll is how often a second migrator looks whether the first is done. It asks again instead of
// waiting inside the server, where it would hold a snapshot all the while.
const lockPoll = 100 * time.Millisecond

// ErrDirty means that a migration was interrupted; Repair decides what became of it.
var ErrDirty = errors.New("the last migration was interrupted: run migrate repair")

// ErrNewer means that the database was migrated by a newer version of this program.
var ErrNewer = errors.New("the database is newer than this program")

// Migration names one version.
type Migration struct {
	Version uint
	Name    string
}

// State is what is known about a database; versions are 0 when nothing is applied.
type State struct {
	Version uint        // as golang-migrate has it
	Dirty   bool        // a migration was interrupted: Version may or may not be applied
	Applied uint        // newest version stamped by its own file
	Latest  uint        // newest version this program knows
	Pending []Migration // what Up would apply, in order
}

// Up applies everything pending. Of several at once one does the work and the others wait for it; a
// cancelled ctx takes effect between two files.
func Up(ctx context.Context, url string) error {
	m, err := newMigrator(url, migrations.FS)
	if err != nil {
		return err
	}
	return m.up(ctx)
}

// Down undoes the newest version, or everything. With the last version sb_internal goes too.
func Down(ctx context.Context, url string, all bool) error {
	m, err := newMigrator(url, migrations.FS)
	if err != nil {
		return err
	}
	return m.down(ctx, all)
}

// Contents are what somebody has made of sb, and would miss if sb were removed.
type Contents struct {
	Queues        bool
	Conversations bool
	StateTables   []string // they would stay, as tables that nothing empties any more
}

// FindContents looks what there is.
func FindContents(ctx context.Context, url string) (Contents, error) {
	m, err := newMigrator(url, migrations.FS)
	if err != nil {
		return Contents{}, err
	}
	return m.contents(ctx)
}

// Status only reads, so it works on a standby too.
func Status(ctx context.Context, url string) (State, error) {
	m, err := newMigrator(url, migrations.FS)
	if err != nil {
		return State{}, err
	}
	return m.status(ctx)
}

// Repair sets the version to the newest one that stamped itself, and reports whether that changed
// anything. It runs none of the files.
func Repair(ctx context.Context, url string) (bool, error) {
	m, err := newMigrator(url, migrations.FS)
	if err != nil {
		return false, err
	}
	return m.repair(ctx)
}

type migrator struct {
	config *pgx.ConnConfig
	files  fs.FS
	known  []Migration
}

func newMigrator(url string, files fs.FS) (*migrator, error) {
	config, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.up.sql")
	if err != nil {
		return nil, err
	}
	m := &migrator{config: config, files: files}
	for _, name := range names {
		parsed, err := source.DefaultParse(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m.known = append(m.known, Migration{parsed.Version, parsed.Identifier})
	}
	slices.SortFunc(m.known, func(a, b Migration) int { return int(a.Version) - int(b.Version) })
	return m, nil
}

func (m *migrator) up(ctx context.Context) error {
	return m.locked(ctx, func(conn *pgx.Conn) error {
		state, err := m.read(ctx, conn)
		if err != nil {
			return err
		}
		if err := state.check(); err != nil || len(state.Pending) == 0 {
			return err
		}
		if state.Applied == 0 {
			var grant string
			err := conn.QueryRow(ctx, `
				select case when has_database_privilege(current_database(), 'create') then ''
				            else format('role %I may not create schemas in this database: grant create on database %I to %I;',
				                   current_user, current_database(), current_user) end`).Scan(&grant)
			if err != nil {
				return err
			}
			if grant != "" {
				return errors.New(grant)
			}
		}
		// Asked first, because "if not exists" needs the right to create even when it does.
		var exists bool
		if err := conn.QueryRow(ctx, `select to_regnamespace('sb_internal') is not null`).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			if _, err := conn.Exec(ctx, `create schema sb_internal`); err != nil {
				return err
			}
		}
		return m.golang(ctx, conn, func(g *gomigrate.Migrate) error {
			for _, next := range state.Pending {
				if err := m.step(ctx, g, next, 1); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (m *migrator) down(ctx context.Context, all bool) error {
	return m.locked(ctx, func(conn *pgx.Conn) error {
		state, err := m.read(ctx, conn)
		if err != nil {
			return err
		}
		if err := state.check(); err != nil {
			return err
		}
		var undo []Migration
		for _, applied := range slices.Backward(m.known) {
			if applied.Version <= state.Version && (all || undo == nil) {
				undo = append(undo, applied)
			}
		}
		if undo != nil {
			err := m.golang(ctx, conn, func(g *gomigrate.Migrate) error {
				for _, last := range undo {
					if err := m.step(ctx, g, last, -1); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if state, err = m.read(ctx, conn); err != nil || state.Version != 0 {
			return err
		}
		// No cascade: what somebody else put there stops it. Without arguments this is one transaction.
		_, err = conn.Exec(ctx, `
			drop table if exists sb_internal.schema_migrations;
			drop schema if exists sb_internal`)
		return err
	})
}

func (m *migrator) status(ctx context.Context) (State, error) {
	conn, err := pgx.ConnectConfig(ctx, m.config)
	if err != nil {
		return State{}, err
	}
	defer closeConn(conn)
	state, err := m.read(ctx, conn)
	if isRefusal(err) {
		if err := become(ctx, conn); err != nil {
			return state, err
		}
		state, err = m.read(ctx, conn)
	}
	return state, err
}

func (m *migrator) contents(ctx context.Context) (c Contents, err error) {
	conn, err := pgx.ConnectConfig(ctx, m.config)
	if err != nil {
		return c, err
	}
	defer closeConn(conn)
	if err := become(ctx, conn); err != nil {
		return c, err
	}
	var is bool
	if err := conn.QueryRow(ctx, `select to_regclass('sb_internal.endpoint') is not null`).Scan(&is); err != nil || !is {
		return c, err
	}
	err = conn.QueryRow(ctx, `
select exists (select from sb_internal.queue as q where q.queue_id >= 65536), exists (select from sb_internal.endpoint),
       array(
         select r.conrelid::regclass::text
           from pg_constraint as r
           join pg_class as t on t.oid = r.conrelid
          where r.confrelid = 'sb.conversation_group'::regclass
            and r.contype = 'f'
            and t.relnamespace not in ('sb'::regnamespace, 'sb_internal'::regnamespace)
          order by 1)`).Scan(&c.Queues, &c.Conversations, &c.StateTables)
	return c, err
}

func (m *migrator) repair(ctx context.Context) (changed bool, err error) {
	err = m.locked(ctx, func(conn *pgx.Conn) error {
		state, err := m.read(ctx, conn)
		if err != nil {
			return err
		}
		if !state.Dirty && state.Version == state.Applied {
			return nil
		}
		version := int(state.Applied)
		if version == 0 {
			version = database.NilVersion
		}
		changed = true
		return m.golang(ctx, conn, func(g *gomigrate.Migrate) error { return g.Force(version) })
	})
	return changed && err == nil, err
}

// check refuses to go on from a state in which going on could do harm.
func (s State) check() error {
	if s.Dirty {
		return ErrDirty
	}
	if s.Version > s.Latest {
		return fmt.Errorf("%w: version %d there, %d here", ErrNewer, s.Version, s.Latest)
	}
	return nil
}

// read finds the state out without touching anything.
func (m *migrator) read(ctx context.Context, conn *pgx.Conn) (State, error) {
	var state State
	if len(m.known) > 0 {
		state.Latest = m.known[len(m.known)-1].Version
	}
	// to_regclass raises where the schema is there but not for us, which is the right answer.
	var hasVersion, hasMeta bool
	err := conn.QueryRow(ctx, `
		select to_regclass('sb_internal.schema_migrations') is not null,
		       to_regclass('sb_internal.meta') is not null`).Scan(&hasVersion, &hasMeta)
	if err != nil {
		return state, err
	}
	if hasVersion {
		// A failed step down from the first version leaves -1, dirty.
		err := conn.QueryRow(ctx, `select greatest(version, 0), dirty from sb_internal.schema_migrations`).
			Scan(&state.Version, &state.Dirty)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return state, err
		}
	}
	if hasMeta {
		if err := conn.QueryRow(ctx, `select coalesce(max(version), 0) from sb_internal.meta`).Scan(&state.Applied); err != nil {
			return state, err
		}
	}
	for _, known := range m.known {
		if known.Version > state.Version {
			state.Pending = append(state.Pending, known)
		}
	}
	return state, nil
}

// locked runs f alone among all migrators of this database. The lock goes with the connection.
func (m *migrator) locked(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, m.config)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		var got bool
		if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, lockKey).Scan(&got); err != nil {
			return err
		}
		if got {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another migration is running: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
	if err := become(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, settings); err != nil {
		return err
	}
	return f(conn)
}

// become makes the owner of sb the current role, where there is one. Whoever upgrades, superusers above all, does it as
// him: security definer functions run with the rights of the role that created them.
func become(ctx context.Context, conn *pgx.Conn) error {
	var owner string
	err := conn.QueryRow(ctx, `
		select quote_ident(pg_get_userbyid(coalesce(c.relowner, n.nspowner)))
		  from pg_namespace as n
		  left join pg_class as c on c.relnamespace = n.oid and c.relname = 'meta'
		 where n.nspname = 'sb_internal'
		   -- A schema without the table is what a failed first migration has left. Who may go on with it does.
		   and (c.relowner is not null or not has_schema_privilege(n.oid, 'usage'))
		   and pg_get_userbyid(coalesce(c.relowner, n.nspowner)) <> current_user`).Scan(&owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "set role "+owner); err != nil {
		if !isRefusal(err) {
			return err
		}
		return fmt.Errorf("sb belongs to %s: run this as that role or a member of it (%w)", owner, err)
	}
	return nil
}

// isRefusal reports whether rights are missing.
func isRefusal(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "42501"
}

// settings keep a migration from waiting for ever, from the search path of its role, and from a
// shorter statement timeout set for that role.
const settings = `
	set lock_timeout = '10s';
	set statement_timeout = '15min';
	set search_path = pg_catalog`

// golang opens golang-migrate on a connection of its own, as the role that holds the lock.
func (m *migrator) golang(ctx context.Context, lock *pgx.Conn, f func(*gomigrate.Migrate) error) error {
	var role string
	if err := lock.QueryRow(ctx, `select quote_ident(current_user)`).Scan(&role); err != nil {
		return err
	}
	db := stdlib.OpenDB(*m.config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set role "+role+";"+settings)
		return err
	}))
	defer db.Close()
	return m.withDB(db, f)
}

func (m *migrator) withDB(db *sql.DB, f func(*gomigrate.Migrate) error) (err error) {
	files, err := iofs.New(m.files, ".")
	if err != nil {
		return err
	}
	target, err := driver.WithInstance(db, &driver.Config{
		MigrationsTable:       `"sb_internal"."schema_migrations"`,
		MigrationsTableQuoted: true,
	})
	if err != nil {
		files.Close()
		return err
	}
	g, err := gomigrate.NewWithInstance("iofs", files, "pgx5", target)
	if err != nil {
		return err
	}
	defer func() {
		sourceErr, targetErr := g.Close()
		err = errors.Join(err, sourceErr, targetErr)
	}()
	return f(g)
}

// step applies (n = 1) or undoes (n = -1) one migration.
func (m *migrator) step(ctx context.Context, g *gomigrate.Migrate, one Migration, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := g.Steps(n)
	if err == nil {
		return nil
	}
	direction := "up"
	if n < 0 {
		direction = "down"
	}
	return m.explain(fileName(one, direction), err)
}

func fileName(one Migration, direction string) string {
	return fmt.Sprintf("%06d_%s.%s.sql", one.Version, one.Name, direction)
}

// explain replaces golang-migrate's message, which quotes the whole file, by the place and the reason.
func (m *migrator) explain(file string, err error) error {
	var (
		byValue   database.Error
		byPointer *database.Error
		pgErr     *pgconn.PgError
	)
	switch {
	case errors.As(err, &byPointer):
		err = byPointer.OrigErr
	case errors.As(err, &byValue):
		err = byValue.OrigErr
	}
	if !errors.As(err, &pgErr) {
		return fmt.Errorf("%s: %w", file, err)
	}
	place := file
	if text, readErr := fs.ReadFile(m.files, file); readErr == nil && pgErr.Position > 0 {
		place += locate(string(text), int(pgErr.Position))
	}
	for _, more := range []string{pgErr.Detail, pgErr.Hint, pgErr.Where} {
		if more != "" {
			place += " [" + strings.ReplaceAll(more, "\n", "; ") + "]"
		}
	}
	return fmt.Errorf("%s: %w; nothing of this file was kept: mend the cause, then run migrate repair", place, err)
}

// locate turns a character position into a line of the file, and of the source whose block it is in.
func locate(text string, position int) string {
	before := string([]rune(text)[:min(position, len([]rune(text)))])
	place := fmt.Sprintf(" line %d", strings.Count(before, "\n")+1)
	if begin := strings.LastIndex(before, "-- sqlgen:begin "); begin > strings.LastIndex(before, "-- sqlgen:end ") {
		path := strings.Fields(before[begin:])[2]
		place += fmt.Sprintf(" (sql/%s line %d)", path, strings.Count(before[begin:], "\n"))
	}
	return place
}

// closeConn says goodbye even when the caller's context is over, so that the lock goes at once.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
