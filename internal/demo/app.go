// Package demo is the expense-report application that `sbactivator demo` and `sbactivator dev` run: three services in one
// database, one with its handler in SQL (expenses.sql), two with handlers in Go.
package demo

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/migrate"
)

//go:embed expenses.sql
var objects string

// Site is the database that the application runs in, and the roles that it has there. Nobody but the owner and the
// activator has more rights than the application needs, and none of them is a superuser.
type Site struct {
	Database  string
	Owner     string // owns the database, sb and the application
	Activator string // what the activator logs in as
	Employee  string // may hand in reports
	Service   string // what expenses.process runs as; it cannot log in

	admin    string // superuser's URL
	password string // of all roles
}

// NewSite names database and roles after prefix, on the server of the superuser's URL admin. Prefix and password are of
// letters, digits and underscores.
func NewSite(admin, password, prefix string) *Site {
	return &Site{
		Database: prefix, Owner: prefix, Activator: prefix + "_activator", Employee: prefix + "_employee",
		Service: prefix + "_service", admin: admin, password: password,
	}
}

// URL is the connection URL of one of the roles.
func (s *Site) URL(role string) string {
	u, err := url.Parse(s.admin)
	if err != nil || u.Scheme == "" { // a key=value string, in which the last one wins
		return fmt.Sprintf("%s user=%s password=%s dbname=%s", s.admin, role, s.password, s.Database)
	}
	u.User, u.Path = url.UserPassword(role, s.password), "/"+s.Database
	return u.String()
}

// Create makes roles and database, where they do not exist yet, and installs sb and the application.
func (s *Site) Create(ctx context.Context, in *Input) error {
	if err := s.createDatabase(ctx); err != nil {
		return err
	}
	if err := migrate.Up(ctx, s.URL(s.Owner)); err != nil {
		return err
	}
	return s.install(ctx, in)
}

func (s *Site) createDatabase(ctx context.Context) error {
	return s.asAdmin(ctx, func(conn *pgx.Conn) error {
		for _, role := range s.roles() {
			var exists bool
			if err := conn.QueryRow(ctx, `select to_regrole(quote_ident($1)) is not null`, role).Scan(&exists); err != nil {
				return err
			}
			verb, login := "create", "login"
			if exists {
				verb = "alter"
			}
			if role == s.Service {
				login = "nologin"
			}
			// Not by exec, whose errors quote the statement.
			_, err := conn.Exec(ctx, fmt.Sprintf("%s role %s %s password %s", verb, ident(role), login, literal(s.password)))
			if err != nil {
				return fmt.Errorf("%s role %s: %w", verb, role, err)
			}
		}
		// Who says what runs as a role has to be a member of it, and so has who runs it.
		if err := exec(ctx, conn, fmt.Sprintf("grant %s to %s, %s", ident(s.Service), ident(s.Owner), ident(s.Activator))); err != nil {
			return err
		}
		var exists bool
		err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, s.Database).Scan(&exists)
		if err != nil || exists {
			return err
		}
		return exec(ctx, conn, fmt.Sprintf("create database %s owner %s template template0", ident(s.Database), ident(s.Owner)))
	})
}

// install creates the application's objects, in one transaction; nothing when they are there.
func (s *Site) install(ctx context.Context, in *Input) error {
	conn, err := pgx.Connect(ctx, s.URL(s.Owner))
	if err != nil {
		return err
	}
	defer closeConn(conn)
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var exists bool
		if err := tx.QueryRow(ctx, `select to_regnamespace('expenses') is not null`).Scan(&exists); err != nil || exists {
			return err
		}
		text := strings.NewReplacer(
			`:"employee"`, ident(s.Employee), `:'employee'`, literal(s.Employee),
			`:"service"`, ident(s.Service), `:'service'`, literal(s.Service),
			`:"activator"`, ident(s.Activator), `:'activator'`, literal(s.Activator),
		).Replace(objects)
		// Without arguments, so that one call may hold many statements.
		if err := tx.Conn().PgConn().Exec(ctx, text).Close(); err != nil {
			return fmt.Errorf("expenses.sql: %w", err)
		}
		return in.load(ctx, tx)
	})
}

// load fills the tables by which the services decide.
func (in *Input) load(ctx context.Context, tx pgx.Tx) error {
	batch := &pgx.Batch{}
	for currency, euros := range in.Rates {
		batch.Queue(`insert into expenses.rate (currency, euros) values ($1, $2::text::numeric)`, currency, euros.String())
	}
	for _, a := range in.Approvers {
		batch.Queue(`
insert into approver.person (name, approves_up_to, answers_after) values ($1, $2::text::numeric, $3)`,
			a.Name, a.ApprovesUpTo.String(), a.AnswersAfter)
	}
	for _, c := range in.CostCenters {
		batch.Queue(`
insert into expenses.cost_center (number, name, spending_limit, approver, decide_within)
values ($1, $2, $3::text::numeric, $4, $5 * interval '1 second')`,
			c.Number, c.Name, c.SpendingLimit.String(), c.Approver, c.DecideWithinSeconds)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// Drop removes database and roles.
func (s *Site) Drop(ctx context.Context) error {
	return s.asAdmin(ctx, func(conn *pgx.Conn) error {
		if err := exec(ctx, conn, fmt.Sprintf("drop database if exists %s with (force)", ident(s.Database))); err != nil {
			return err
		}
		for _, role := range s.roles() {
			if err := exec(ctx, conn, "drop role if exists "+ident(role)); err != nil {
				return err
			}
		}
		return nil
	})
}

// NewActivator returns an activator for the application: expenses.process by ExpenseQueue's own setting, and the
// handlers in Go.
func (s *Site) NewActivator(config activator.Config) (*activator.Activator, error) {
	config.DatabaseURL = s.URL(s.Activator)
	a, err := activator.New(config)
	if err != nil {
		return nil, err
	}
	a.HandleFunc("EmployeeQueue", handleAnswer)
	a.HandleFunc("ApproverQueue", handleApproval)
	return a, nil
}

func (s *Site) roles() []string { return []string{s.Owner, s.Activator, s.Employee, s.Service} }

func (s *Site) asAdmin(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	return do(conn)
}

func exec(ctx context.Context, conn *pgx.Conn, sql string) error {
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes one of our own role names or passwords, which hold no backslash.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// closeConn says goodbye also when the context is over.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}
