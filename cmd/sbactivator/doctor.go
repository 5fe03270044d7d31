package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/internal/doctor"
	"github.com/pgsbroker/sbroker/internal/screen"
	"github.com/pgsbroker/sbroker/migrations"
)

func newDoctorCommand() *cobra.Command {
	var (
		asJSON, list bool
		patience     time.Duration
		skip         []string
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong in plain words, and which SQL mends it",
		Long: `Say what is wrong with the services, queues, activation, conversations and the server under them, in plain words, and
which SQL mends it. Changes nothing by itself. Best run as an admin of sb, with the configuration of the activator; another
role learns about what it may see.

Exits with 1 when something was found.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if patience <= 0 {
				return errors.New("--patience must be greater than 0")
			}
			for _, name := range skip {
				if !slices.Contains(doctor.Names(), name) {
					return fmt.Errorf("--skip: there is no check %q; see --list", name)
				}
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return show(cmd, asJSON, newCheckList())
			}
			config, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			return withLook(cmd, func(ctx context.Context, conn *pgx.Conn) error {
				report := doctorReport{Format: 1}
				err := inSnapshot(ctx, conn, func(tx pgx.Tx) (err error) {
					if report.Database, err = readDatabase(ctx, tx); err != nil {
						return err
					}
					var handlers []doctor.Handler
					for _, h := range config.Handlers {
						near, err := nearestQueue(ctx, tx, h.Queue)
						if err != nil {
							return err
						}
						handlers = append(handlers, doctor.Handler{Queue: h.Queue, Nearest: near})
					}
					report.Report, err = doctor.Run(ctx, tx, report.Database.IsAdmin, doctor.Options{
						SchemaVersion: int64(migrations.Latest()), Patience: patience, Handlers: handlers, Skip: skip,
					})
					return err
				})
				if err != nil {
					return err
				}
				report.Database.Server = serverOf(conn)
				if err := show(cmd, asJSON, report); err != nil {
					return err
				}
				if len(report.Findings) > 0 {
					return errReported
				}
				return nil
			})
		},
	}
	addJSONFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&list, "list", false, "list the checks instead")
	cmd.Flags().DurationVar(&patience, "patience", 5*time.Minute, "how long something may wait before that is a finding")
	cmd.Flags().StringSliceVar(&skip, "skip", nil, "checks to leave out")
	return cmd
}

// doctorReport is what doctor prints. Its JSON is documented in docs/operations.md: keys may be added, not changed.
type doctorReport struct {
	Format   int            `json:"format"` // 1
	Database databaseStatus `json:"database"`
	*doctor.Report
}

func (r doctorReport) print(p *page) {
	limits := ""
	if !r.Database.IsAdmin {
		limits = fmt.Sprintf(" of what role %s may see: it is no admin of sb", r.Database.Role)
	}
	if len(r.Findings) == 0 {
		p.line(screen.Green, "%s on %s: nothing wrong, %d checks%s.", r.Database.Name, r.Database.Server, r.Checks, limits)
		return
	}
	colors := map[doctor.Severity]string{doctor.Error: screen.Red, doctor.Warning: screen.Yellow, doctor.Advice: screen.Cyan}
	explained := ""
	for _, f := range r.Findings {
		p.line(colors[f.Severity], "%s: %s", f.Severity, f.Check)
		p.text("", "  ", f.What)
		if f.Check != explained { // once for several of a kind
			p.text(screen.Dim, "  ", f.Why)
			explained = f.Check
		}
		if f.MendBy != "" {
			p.text(screen.Dim, "    ", "-- to be run by "+f.MendBy)
		}
		for line := range strings.Lines(f.Mend) {
			p.WriteString("    " + screen.Paint(p.color, screen.Bold, strings.TrimRight(line, "\n")) + "\n")
		}
		p.WriteString("\n")
	}
	p.line(screen.Bold, "%s on %s: %s, %d checks%s.", r.Database.Name, r.Database.Server,
		screen.Plural(int64(len(r.Findings)), "finding"), r.Checks, limits)
}

// checkList is what doctor --list prints.
type checkList struct {
	Checks []listedCheck `json:"checks"`
}

type listedCheck struct {
	Check string `json:"check"`
	Why   string `json:"why"`
}

func newCheckList() (l checkList) {
	for _, name := range doctor.Names() {
		l.Checks = append(l.Checks, listedCheck{name, doctor.Explain(name)})
	}
	return l
}

func (l checkList) print(p *page) {
	for _, c := range l.Checks {
		p.line(screen.Bold, "%s", c.Check)
		p.text("", "  ", c.Why)
	}
}
