package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/agents"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

func (c *program) agentsCommand() *cobra.Command {
	list := c.agentCommand(&cobra.Command{
		Use: "list", Short: "List the agents that sessions started", Args: noArguments,
		Long:    "Lists the agents that sessions started, the youngest first: state, runs, exit status and cost.",
		Example: "  attache agents list",
	}, func(ctx context.Context, db *teams.Store, _ []string) error { return agents.Print(ctx, c.Process, db) })
	logs := c.agentCommand(&cobra.Command{
		Use: "logs ID", Short: "Print what an agent wrote in its last run", Args: oneAgent,
		Long:    "Prints what an agent wrote to stdout and stderr in its last run, of each the first 10 MiB.",
		Example: "  attache agents logs ses_k3v9q2m8d4tw",
	}, func(ctx context.Context, db *teams.Store, args []string) error {
		return agents.PrintLogs(ctx, c.Process, db, args[0])
	})
	stop := c.agentCommand(&cobra.Command{
		Use: "stop ID", Short: "End an agent, and those that it started", Args: oneAgent,
		Long:    "Ends the session of an agent and those that it created. The session that created it gets the result.",
		Example: "  attache agents stop ses_k3v9q2m8d4tw",
	}, func(ctx context.Context, db *teams.Store, args []string) error {
		return agents.Stop(ctx, c.Process, db, args[0])
	})
	return group(&cobra.Command{
		Use:   "agents",
		Short: "List, read and stop the agents that sessions started",
		Long: `The agents that sessions started by attache teams: what they do, what they wrote, and a way to
stop them. What they write is kept for seven days.`,
		Example: `  attache agents list
  attache agents logs ses_k3v9q2m8d4tw
  attache agents stop ses_k3v9q2m8d4tw`,
	}, list, logs, stop)
}

// agentCommand makes cmd open the registry of the configuration and call do with it.
func (c *program) agentCommand(cmd *cobra.Command, do func(context.Context, *teams.Store, []string) error) *cobra.Command {
	return c.withSettings(cmd, setting.NewFlags(cmd), func(ctx context.Context, s *config.Settings, args []string) error {
		return agents.Use(c.Process, s, func(db *teams.Store) error { return do(ctx, db, args) })
	})
}

func oneAgent(cmd *cobra.Command, args []string) error {
	return oneArgument(cmd, args, `the id of one agent: see "attache agents list"`)
}

// agentRunCommand supervises one agent. Only attache itself starts it.
func (c *program) agentRunCommand() *cobra.Command {
	return &cobra.Command{
		Use: agents.Command + " ID", Short: "Supervise one agent (for attache itself)", Hidden: true, Args: oneAgent,
		Long:    "Starts the agent that stdin describes, and reports how it ended. Only attache itself uses this command.",
		Example: "  attache agent-run ses_k3v9q2m8d4tw < order.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			// The agent runs even if the process that waits for "started" has ended.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			out, ok := c.out.To.(io.WriteCloser)
			if !ok {
				return errors.New("stdout cannot be closed")
			}
			return agents.Supervise(ctx, c.Stdin, out)
		},
	}
}
