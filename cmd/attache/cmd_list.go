package main

import (
	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// subcommands returns attache's own commands, in no order: help sorts them.
func (c *program) subcommands() []*cobra.Command {
	return []*cobra.Command{
		c.configCommand(),
		c.keyCommand(),
		c.policyCommand(),
		c.versionCommand(),
		c.completionCommand(),
		c.demoCommand(),
		c.replayCommand(),
		c.explainCommand(),
		c.auditCommand(),
		c.wrapCommand(),
		c.unwrapCommand(),
		c.injectCommand(),
		c.doctorCommand(),
		c.recipeCommand(),
		c.statusCommand(),
		c.storeCommand(),
		c.restartCommand(),
		c.loginCommand(),
		c.logoutCommand(),
		c.trustCommand(),
		c.untrustCommand(),
		c.serveCommand(),
		c.teamsCommand(),
		c.agentsCommand(),
		c.agentRunCommand(),
	}
}

// group makes cmd a command that only holds others.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = wantsCommand
	cmd.RunE = func(*cobra.Command, []string) error { return nil } // wantsCommand lets nothing through
	cmd.AddCommand(subs...)
	return cmd
}

// wantsCommand says which commands there are.
func wantsCommand(cmd *cobra.Command, args []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	switch {
	case len(args) == 0:
		return cli.Usagef("%q wants a command: %s; see \"%s --help\"", cmd.CommandPath(), cli.Quoted(names), cmd.CommandPath())
	case cli.Nearest(args[0], names) != "":
		return cli.Usagef("unknown command %q: did you mean \"%s %s\"?", args[0], cmd.CommandPath(), cli.Nearest(args[0], names))
	}
	return cli.Usagef("unknown command %q: write %s; see \"%s --help\"", args[0], cli.Quoted(names), cmd.CommandPath())
}

// noArguments refuses arguments, saying what to do instead.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Usagef("unexpected %q: %q takes no arguments, see \"%s --help\"", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}
