package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/session"
	"github.com/attache-mcp/attache/cmd/attache/internal/teamserver"
)

func (c *program) teamsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "teams [flags]",
		Short: "Serve the tools by which sessions create others and write to them",
		Long: `The MCP server attache-teams: its tools create sessions in the workspace, write to sessions,
list them, read messages and end sessions. A client starts it; "attache wrap --teams" puts it
into the client's configuration. It needs teams.enabled, and agents that it may create.`,
		Example: `  attache wrap --all --teams    put it into the configuration of all clients
  attache teams                 what the client then starts`,
		Args: noArguments,
	}
	flags := config.AddFlags(cmd)
	for _, name := range []string{"bearer-env", "stdout-noise", "dry-run"} { // there is no server, and a dry run is refused
		_ = cmd.Flags().MarkHidden(name)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		load := func() (*config.Settings, error) {
			return config.Load(c.Process, flags, []string{teamserver.Name})
		}
		s, err := load()
		if err != nil {
			return err
		}
		if !s.Teams.Enabled {
			return cli.Usagef("teams are off: write \"teams: {enabled: true}\" into %s", cmp.Or(s.File, filepath.Join(c.ConfigDir, "attache", "config.yaml")))
		}
		if s.DryRun {
			return cli.Usagef("attache teams has no dry run, because its tools start agents and send messages: leave out dry_run, which comes from %v", s.Origin("dry_run"))
		}
		executable, err := os.Executable()
		if err != nil {
			return fmt.Errorf("the path of attache is not known, and agents need it: %w", err)
		}
		sink := logging.NewSink(c.Stderr)
		defer sink.Close()
		p := c.Process
		p.Stdout = c.out.To // the protocol uses it
		log := logging.New(p, s, sink)
		return cli.ExitWith(session.RunTeams(cmd.Context(), session.Options{Process: p, Settings: s, Load: load, Version: ownVersion(), Log: log}, executable))
	}
	return cmd
}
