package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/session"
	"github.com/attache-mcp/attache/cmd/attache/internal/status"
	"github.com/attache-mcp/attache/cmd/attache/internal/teamserver"
)

func (c *program) restartCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "restart [--server NAME]",
		Short: "End a running server and start it again under its client",
		Long: `End the server of a running attache and start it again. The client stays connected; only calls that
were running fail. Use it when you have built your server again. Without --server, only one server may be
running, apart from attache-teams. A server of several clients is restarted for all of them, and so are all
servers of one attache serve.`,
		Example: `  go build -o server . && attache restart
  attache restart --server git`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if !session.CanRestart() {
				return session.Restart(0) // says what to do instead
			}
			may := func(r status.Report) bool {
				return name == "" && r.Restart && r.Server != teamserver.Name || r.Restarts(name)
			}
			running, err := status.Await(status.Dirs(c.Process), may)
			if err != nil {
				return fmt.Errorf("the list of running attaches cannot be read: %w", err)
			}
			return c.restart(slices.DeleteFunc(running, func(r status.Report) bool { return !may(r) }), name)
		},
	}
	cmd.Flags().StringVar(&name, "server", "", "the `NAME` of the server, as attache status shows it")
	return cmd
}

// restart makes the attaches in front of the named server restart it. An empty name means the only
// server.
func (c *program) restart(running []status.Report, name string) error {
	var names []string
	for _, r := range running {
		if !slices.Contains(names, r.Server) {
			names = append(names, r.Server)
		}
	}
	switch {
	case len(running) == 0 && name != "":
		return fmt.Errorf("no attache runs in front of a server %q that can be restarted: attache status shows what runs", name)
	case len(running) == 0:
		return errors.New("no attache runs in front of a server that can be restarted: attache status shows what runs")
	case len(names) > 1 && name == "":
		return cli.Usagef("several servers run: name one with --server (%s)", strings.Join(names, ", "))
	}
	for _, r := range running {
		if err := session.Restart(r.PID); err != nil {
			return fmt.Errorf("process %d in front of %s cannot be told to restart it: %w", r.PID, r.Server, err)
		}
		fmt.Fprintf(c.Stdout, "%s: process %d was told to restart it\n", cli.Printable(r.Restartable()), r.PID)
	}
	return nil
}
