package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/demo"
	"github.com/pgsbroker/sbroker/internal/privatepg"
	"github.com/pgsbroker/sbroker/testdata"
)

// demoTimeout is far more than the demonstration takes; downloading or pulling PostgreSQL may come before.
const demoTimeout = 10 * time.Minute

func newDemoCommand() *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the expense-report example on a PostgreSQL server of its own",
		Long: `Run the expense-report example on a PostgreSQL server of its own, and show the conversations as they happen.

The server is started from an installation, in a container, or from a download, whichever comes first, and
removed at the end. With --database-url (the flag only, of a superuser), the example runs on that server
instead, in a database with roles of its own, which are dropped at the end.

Exits with 1 when the reports handed in and what became of them do not add up.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), demoTimeout)
			defer cancel()
			err := runDemo(ctx, cmd, input)
			if cmd.Context().Err() != nil {
				return errors.New("interrupted")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "JSON file to use instead of the built-in testdata/expense-reports.json")
	return cmd
}

func runDemo(ctx context.Context, cmd *cobra.Command, inputFile string) (err error) {
	config, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	text := testdata.ExpenseReports
	if inputFile != "" {
		if text, err = os.ReadFile(inputFile); err != nil {
			return configErrorf("%w", err)
		}
	}
	in, err := demo.ParseInput(text)
	if err != nil {
		return configErrorf("input: %w", err)
	}
	site, cleanup, err := demoSite(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, cleanup(ctx))
	}()
	if err := site.Create(ctx, in); err != nil {
		return err
	}
	return demo.Run(ctx, site, in, cmd.OutOrStdout(), demoActivator(cmd, config))
}

// demoSite provides a server. What it returns is to be cleaned up.
func demoSite(ctx context.Context, cmd *cobra.Command) (*demo.Site, func(context.Context) error, error) {
	if cmd.Flags().Changed("database-url") {
		admin, err := cmd.Flags().GetString("database-url")
		if err != nil {
			return nil, nil, err
		}
		site := demo.NewSite(admin, rand.Text(), "sbroker_demo_"+strings.ToLower(rand.Text()[:8]))
		return site, site.Drop, nil
	}
	fmt.Fprintln(cmd.OutOrStdout(), "Starting a private PostgreSQL …")
	server, err := privatepg.Start(ctx, privatepg.Options{})
	if err != nil {
		return nil, nil, err
	}
	from := server.BinDir()
	if from == "" {
		from = "a container"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "It runs from %s. Installing sb and the expense-report application …\n", from)
	return demo.NewSite(server.URL(), rand.Text(), "sbroker"), server.Stop, nil
}

// demoActivator is the activator's configuration. What it usually logs would disturb the drawing.
func demoActivator(cmd *cobra.Command, config Config) activator.Config {
	if !cmd.Flags().Changed("log-level") {
		config.Log.Level = max(config.Log.Level, slog.LevelError)
	}
	return activator.Config{
		PollInterval:    config.Activation.PollInterval,
		HandlerTimeout:  config.Activation.HandlerTimeout,
		ShutdownTimeout: config.Activation.ShutdownTimeout,
		Logger:          newLogger(cmd, config.Log),
	}
}

// passwordOf is the password in a URL.
func passwordOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}
