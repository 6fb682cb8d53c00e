package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/agents"
	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// agentsCommand shows people the agents that sessions started.
func (c *program) agentsCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the agents that sessions started", Args: noArguments,
		Long:    "Lists the agents that sessions started, the youngest first: state, runs, exit status and cost.",
		Example: "  attache agents list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withTeams(func(db *teams.Store) error { return c.listAgents(cmd.Context(), db) })
		},
	}
	logs := &cobra.Command{
		Use: "logs ID", Short: "Print what an agent wrote in its last run", Args: oneAgent,
		Long:    "Prints what an agent wrote to stdout and stderr in its last run, of each the first 10 MiB.",
		Example: "  attache agents logs ses_k3v9q2m8d4tw",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withTeams(func(db *teams.Store) error { return c.agentLogs(cmd.Context(), db, args[0]) })
		},
	}
	stop := &cobra.Command{
		Use: "stop ID", Short: "End an agent, and those that it started", Args: oneAgent,
		Long:    "Ends the session of an agent and those that it created. The session that created it gets the result.",
		Example: "  attache agents stop ses_k3v9q2m8d4tw",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withTeams(func(db *teams.Store) error { return c.stopAgent(cmd.Context(), db, args[0]) })
		},
	}
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

// oneAgent wants the id of one session.
func oneAgent(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("%q wants the id of one agent: see \"attache agents list\"", cmd.CommandPath())
	}
	return nil
}

// agentRunCommand supervises one agent. attache starts it.
func (c *program) agentRunCommand() *cobra.Command {
	return &cobra.Command{
		Use: agents.Command + " ID", Short: "Supervise one agent (for attache itself)", Hidden: true, Args: oneAgent,
		Long:    "Starts the agent that stdin says, and reports how it ended. attache starts it, and nobody else.",
		Example: "  attache agent-run ses_k3v9q2m8d4tw < order.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			// Whoever waits for "started" may be gone: the agent runs all the same.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			out, ok := c.out.To.(io.WriteCloser)
			if !ok {
				return errors.New("stdout cannot be closed")
			}
			return agents.Supervise(ctx, c.Stdin, out)
		},
	}
}

// withTeams opens the registry, if there is one.
func (c *program) withTeams(f func(*teams.Store) error) error {
	path := assembly.TeamsFile(c.Process)
	if _, err := os.Stat(path); path == "" || errors.Is(err, fs.ErrNotExist) {
		return errors.New("no session has started an agent yet; see \"attache teams --help\"")
	}
	db, err := assembly.OpenTeams(c.Process)
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

func (c *program) listAgents(ctx context.Context, db *teams.Store) error {
	all, err := db.Agents(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"SESSION", "AGENT", "STATE", "CREATED", "RUNS", "EXIT", "USD", "PARENT", "TITLE"}}
	for _, s := range all {
		exit := ""
		if !s.Active() {
			exit = fmt.Sprint(s.ExitStatus)
		}
		rows = append(rows, []string{s.ID, s.Agent, string(s.State), s.Created.Format(time.DateTime), fmt.Sprint(s.Run), exit, s.CostUSD, s.Parent, s.Title})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
		}
		fmt.Fprintln(c.Stdout, strings.TrimRight(line.String(), " "))
	}
	return nil
}

// agent returns the session of that handle, which attache started.
func agent(ctx context.Context, db *teams.Store, id string) (*teams.Session, error) {
	all, err := db.Agents(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(s *teams.Session) bool { return s.ID == id }); i >= 0 {
		return all[i], nil
	}
	return nil, cli.Usagef("there is no agent %q: see \"attache agents list\"", id)
}

func (c *program) agentLogs(ctx context.Context, db *teams.Store, id string) error {
	s, err := agent(ctx, db, id)
	if err != nil {
		return err
	}
	name := filepath.Join(agents.Directory(c.Process), s.ID, fmt.Sprintf("run-%d", s.Run))
	for _, to := range []struct {
		ending string
		out    io.Writer
	}{{".out", c.Stdout}, {".err", c.Stderr}} {
		f, err := os.Open(name + to.ending)
		if err != nil {
			return fmt.Errorf("what the agent wrote is not kept any more: %w", err)
		}
		_, err = io.Copy(to.out, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (c *program) stopAgent(ctx context.Context, db *teams.Store, id string) error {
	s, err := agent(ctx, db, id)
	if err != nil {
		return err
	}
	ended, err := db.EndByOperator(ctx, s.Ref)
	for _, id := range ended {
		fmt.Fprintln(c.Stdout, "ended", id)
	}
	return err
}
