package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/overview"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
)

func (c *program) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show which servers are wrapped, which attaches run, and what they did",
		Long: `Show which servers in your clients' configuration files are wrapped, your logins to remote
servers, and each attache that runs: its server, its session, how many calls it passed, and how
often it filled, pinned and refused. Values of arguments are not shown.`,
		Example: `  attache status
  attache status --json`,
		Args: noArguments,
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON instead of text")
	cmd.RunE = func(*cobra.Command, []string) error {
		now := time.Now()
		report, err := overview.New(c.Process, now)
		if err != nil {
			return err
		}
		if *asJSON {
			return term.WriteJSON(c.Stdout, report)
		}
		_, err = io.WriteString(c.Stdout, report.Text(now))
		return err
	}
	return cmd
}
