package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/migrate"
)

func newRunCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the activation procedures of all queues, and the handlers of the configuration, until stopped",
		Long: `Run the activation procedures of all queues, and the handlers of the configuration, until stopped.

The role must be an admin of sb (sb.grant_admin), a member of every execute_as role, and no superuser.
Any number of activators may share a database. SIGTERM or Ctrl-C lets what runs finish, up to
activation.shutdown_timeout, and rolls back the rest; a second one ends the process at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			return runActivator(cmd, config)
		},
	}
}

func runActivator(cmd *cobra.Command, config Config) error {
	logger, m := newLogger(cmd, config.Log), newMetrics()
	settings := activatorConfig(config, logger)
	settings.Observer = m
	a, err := activator.New(settings)
	if err != nil {
		return &configError{err}
	}
	if err := registerHandlers(a, config, logger); err != nil {
		return err
	}
	stop, err := serveHTTP(cmd.Context(), config, a, m, logger)
	if err != nil {
		return err
	}
	defer stop()

	// From the first signal on, the next one does what it does to any process.
	ctx := cmd.Context()
	release := context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
	defer release()
	err = a.Run(ctx)
	if errors.Is(err, activator.ErrCannotStart) {
		if hasSQLState(err, "42501") {
			role := "…"
			if at, parseErr := migrate.ParseURL(config.Database.URL); parseErr == nil {
				role = at.User
			}
			err = fmt.Errorf("%w; the role must be an admin of sb, which another one makes it: select sb.grant_admin('%s')",
				err, strings.ReplaceAll(role, "'", "''"))
		}
		return &configError{err}
	}
	return err
}

// activatorConfig translates the configuration: here 0 means none, there the default.
func activatorConfig(config Config, logger *slog.Logger) activator.Config {
	return activator.Config{
		DatabaseURL:     config.Database.URL,
		Pooler:          config.Database.Pooler,
		PoolSize:        config.Database.PoolSize,
		PollInterval:    config.Activation.PollInterval,
		IdleTimeout:     orNegative(config.Activation.IdleTimeout),
		HandlerTimeout:  config.Activation.HandlerTimeout,
		ShutdownTimeout: orNegative(config.Activation.ShutdownTimeout),
		StartupTimeout:  orNegative(config.Database.StartupTimeout),
		Logger:          logger,
	}
}

func orNegative(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}
