package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/internal/demo"
	"github.com/pgsbroker/sbroker/internal/privatepg"
	"github.com/pgsbroker/sbroker/testdata"
)

func newDevCommand() *cobra.Command {
	var (
		dir  string
		port int
	)
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Keep a PostgreSQL server with sb and the expense-report example running",
		Long: `Keep a PostgreSQL server with sb, the expense-report example and an activator for it running, and show what
happens there, until Ctrl-C. The next start goes on where this one has ended; remove the directory to begin anew.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("database-url") {
				return configErrorf("dev has a server of its own; on yours use migrate up and run")
			}
			err := runDev(cmd.Context(), cmd, dir, port)
			if cmd.Context().Err() != nil && errors.Is(err, cmd.Context().Err()) {
				return nil // Ctrl-C is how it ends, at whatever moment
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".sbroker", "where the server keeps everything")
	cmd.Flags().IntVar(&port, "port", 0, "port of the server on 127.0.0.1 (default: a free one)")
	return cmd
}

func runDev(ctx context.Context, cmd *cobra.Command, dir string, port int) (err error) {
	config, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	in, err := demo.ParseInput(testdata.ExpenseReports)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "Starting PostgreSQL in %s …\n", dir)
	server, err := privatepg.Start(ctx, privatepg.Options{DataDir: dir, Port: port, Fsync: true})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, server.Stop(ctx))
	}()
	// The server's password, which lives as long as its data, does for all roles: nobody else can reach the server.
	site := demo.NewSite(server.URL(), passwordOf(server.URL()), "sbroker")
	if err := site.Create(ctx, in); err != nil {
		return err
	}
	handlers, err := site.NewActivator(demoActivator(cmd, config))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `
Connect with

  psql '%s'

and hand in a report there:

  select employee.submit('X-1', '{"number": "X-1", "employee": "You", "cost_center": "127-1001", "items":
    [{"what": "Train", "amount": 42.50, "currency": "EUR", "receipt": true}]}');
  select * from employee.submission order by submitted_at desc limit 1;

Ctrl-C stops everything; the next start goes on with what is there.
`, site.URL(site.Owner))
	drawing, err := demo.NewDrawing(ctx, out, site)
	if err != nil {
		return err
	}
	drawing.Lifelines()
	defer func() { err = errors.Join(err, drawing.Stop()) }()
	return handlers.Run(ctx)
}
