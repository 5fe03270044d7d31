package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/internal/migrate"
)

// commands is every subcommand, in the order of the help text; each has a file of its own.
var commands = []func() *cobra.Command{
	newDemoCommand,
	newDevCommand,
	newRunCommand,
	newMigrateCommand,
	newStatusCommand,
	newHealthCommand,
	newQueueCommand,
	newConversationCommand,
	newDoctorCommand,
	newVersionCommand,
}

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitConfig = 3 // configuration or connection refused
)

// errReported fails a command that has said all there is to say.
var errReported = errors.New("already reported")

func init() { cobra.EnableCommandSorting = false } // the help keeps the order of commands

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sbactivator",
		Short: "Service Broker for PostgreSQL: install it, run its handlers, look into it",
		Long: `Service Broker for PostgreSQL: install it, run its handlers, look into it.

Settings come from flags, else from SBACTIVATOR_… in the environment, else from sbactivator.yaml.
The usual PG* variables, service file and password file fill in what the database url leaves out.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 configuration or connection refused.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	addConfigFlags(root.PersistentFlags())
	for _, command := range commands {
		root.AddCommand(command())
	}
	markErrors(root)
	return root
}

// runError is an error of a command that was called correctly. Whatever else cobra returns is wrong usage.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error }

// markErrors wraps the errors of cmd and everything below it in runError, and makes a command that
// only holds others refuse to be called alone, which cobra would answer with help and success.
func markErrors(cmd *cobra.Command) {
	switch inner := cmd.RunE; {
	case inner != nil:
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := inner(cmd, args); err != nil {
				return runError{err}
			}
			return nil
		}
	case cmd.HasSubCommands():
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), suggest(cmd, args[0]))
			}
			return fmt.Errorf("%q needs one of the commands %s", cmd.CommandPath(), strings.Join(names(cmd), ", "))
		}
	}
	for _, child := range cmd.Commands() {
		markErrors(child)
	}
}

func suggest(cmd *cobra.Command, arg string) string {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(arg); len(near) > 0 {
		return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	return ""
}

func names(cmd *cobra.Command) []string {
	var list []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			list = append(list, child.Name())
		}
	}
	return list
}

// run executes one command line and returns the exit code. Errors are one line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := exitCode(err)
	switch {
	case err == nil || errors.Is(err, errReported):
	case code == exitUsage:
		fmt.Fprintf(stderr, "sbactivator: %s; see sbactivator --help\n", oneLine(err))
	default:
		fmt.Fprintf(stderr, "sbactivator: %s\n", oneLine(err))
	}
	return code
}

func exitCode(err error) int {
	var (
		failed  runError
		config  *configError
		connect *pgconn.ConnectError
	)
	switch {
	case err == nil:
		return exitDone
	case !errors.As(err, &failed):
		return exitUsage
	case errors.As(err, &config), errors.As(err, &connect), errors.Is(err, migrate.ErrURL):
		return exitConfig
	}
	return exitFailed
}

// oneLine flattens errors such as pgx's, which give every address tried a line, with TLS and without.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
