package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/internal/migrate"
	"github.com/pgsbroker/sbroker/internal/screen"
)

func newMigrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Install, upgrade or remove sb in a database",
		Long: `Install, upgrade or remove sb in a database, next to whatever else is there.

The role needs CREATE on the database to install, and becomes the owner of sb. Connect directly, not
through a pooler in transaction mode.`,
	}

	up := &cobra.Command{
		Use:   "up",
		Short: "Apply everything pending",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return migrated(cmd, func(url string) error { return migrate.Up(cmd.Context(), url) })
		},
	}

	var all, yes bool
	down := &cobra.Command{
		Use:   "down",
		Short: "Undo the newest version; all conversations and messages go with the last one",
		Long: `Undo the newest version, or everything; all conversations and messages go with the last version.

Asks first at a terminal, unless --yes. Elsewhere --all needs --yes when there are queues or conversations.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return migrated(cmd, func(url string) error {
				if !yes {
					if err := confirmDown(cmd, url, all); err != nil {
						return err
					}
				}
				return migrate.Down(cmd.Context(), url, all)
			})
		},
	}
	down.Flags().BoolVar(&yes, "yes", false, "do not ask")
	down.Flags().BoolVar(&all, "all", false, "undo everything and remove both schemas")

	status := &cobra.Command{
		Use:   "status",
		Short: "Show version, dirty and pending",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			state, err := migrate.Status(cmd.Context(), config.Database.URL)
			if err != nil {
				return err
			}
			return printState(cmd.OutOrStdout(), state)
		},
	}

	repair := &cobra.Command{
		Use:   "repair",
		Short: "Decide what became of an interrupted migration",
		Long: `Decide what became of an interrupted migration.

Every migration stamps itself in its own transaction, so the newest stamp is the version that the
database is at. Nothing but the noted version changes; run migrate up afterwards.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			changed, err := migrate.Repair(cmd.Context(), config.Database.URL)
			if err != nil {
				return err
			}
			if !changed {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to repair")
			}
			state, err := migrate.Status(cmd.Context(), config.Database.URL)
			if err != nil {
				return err
			}
			return printState(cmd.OutOrStdout(), state)
		},
	}

	cmd.AddCommand(up, down, status, repair)
	return cmd
}

// confirmDown asks whether to go down, or makes sure that nobody has to be asked.
func confirmDown(cmd *cobra.Command, url string, all bool) error {
	atTerminal := screen.IsTerminal(cmd.InOrStdin())
	if !atTerminal && !all {
		return nil
	}
	state, err := migrate.Status(cmd.Context(), url)
	if err != nil || state.Version == 0 {
		return err
	}
	has, err := migrate.FindContents(cmd.Context(), url)
	if err != nil {
		return err
	}
	what := "sb with its queues, services and everything else"
	if has.Conversations {
		what += ", all conversations and messages too"
	}
	if len(has.StateTables) > 0 {
		what += "; what is left of state tables (" + strings.Join(has.StateTables, ", ") + ") nothing empties any more"
	}
	if !atTerminal {
		if has.Queues || has.Conversations {
			return fmt.Errorf("this would remove %s, and there is no terminal to ask at: pass --yes", what)
		}
		return nil
	}
	question := fmt.Sprintf("Undo version %d of sb?", state.Version)
	if all || state.Version == 1 {
		question = "Remove " + what + "?"
	}
	return confirm(cmd.Context(), cmd, question, "nothing was undone")
}

// migrated runs do and says where that has led, also when it failed half-way.
func migrated(cmd *cobra.Command, do func(url string) error) error {
	config, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	url := config.Database.URL
	before, err := migrate.Status(cmd.Context(), url)
	if err != nil {
		return err
	}
	err = do(url)
	after, statusErr := migrate.Status(cmd.Context(), url)
	switch {
	case statusErr != nil:
		return errors.Join(err, statusErr)
	case err != nil:
		return err
	case after.Version == before.Version:
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "nothing to do, version %d\n", after.Version)
	default:
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "version %d, was %d\n", after.Version, before.Version)
	}
	return err
}

func printState(w io.Writer, state migrate.State) error {
	if state.Dirty {
		_, err := fmt.Fprintf(w, "version not known: a migration was interrupted\ndirty   true\nnext    sbactivator migrate repair, which finds out\n")
		return err
	}
	pending := []string{"none"}
	for i, m := range state.Pending {
		if i == 0 {
			pending = nil
		}
		pending = append(pending, fmt.Sprintf("%d %s", m.Version, m.Name))
	}
	_, err := fmt.Fprintf(w, "version %d\ndirty   %t\npending %s\n", state.Version, state.Dirty, strings.Join(pending, ", "))
	return err
}
