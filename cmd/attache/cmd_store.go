package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/cmd/attache/internal/stores"
)

func (c *program) storeCommand() *cobra.Command {
	sub := func(name, short, long string, do stores.Command) *cobra.Command {
		cmd := &cobra.Command{Use: name + " [flags]", Short: short, Long: long, Example: "  attache store " + name, Args: noArguments}
		return c.withSettings(cmd, setting.NewFlags(cmd), func(ctx context.Context, s *config.Settings, _ []string) error {
			return stores.Run(ctx, c.Process, s, do)
		})
	}
	return group(&cobra.Command{
		Use:   "store",
		Short: "Make, change and check the tables of the shared database",
		Long: `Manage the PostgreSQL database of store.url, which several machines share. Nothing else makes or
changes its tables. Without store.url the state is in files of the user, which need no maintenance.`,
		Example: `  attache store migrate
  attache store status`,
	},
		sub("migrate", "Make the tables, or bring them to the version of this attache",
			"Make the tables in an empty database, or bring them to the version of this attache: all of it or nothing. An attache\nworks with tables of its own version and of the next one, so migrate first, and then replace the attaches.", stores.Migrate),
		sub("status", "Print the versions of the tables; exit 1 if this attache cannot use them",
			"Print where the database is and which versions its tables have. The exit status is 1 if this attache cannot use\nthem, or if the database does not answer.", stores.Status),
		sub("check", "Check tables, role and settings of the database; exit 1 if something is wrong",
			"Check the versions of the tables, whether row level security applies to the role, what the role may do, and settings\nof the server that lose data. The exit status is 1 if something is wrong.", stores.Check))
}
