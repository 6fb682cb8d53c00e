package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// subcommands returns the subcommands of attache. Help sorts them.
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

// group makes cmd a command that only has subcommands.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = wantsCommand
	cmd.RunE = func(*cobra.Command, []string) error { return nil } // wantsCommand has refused all arguments
	cmd.AddCommand(subs...)
	return cmd
}

// withSettings makes cmd load the settings, for the server after "--" if there is one, and call do with them.
func (c *program) withSettings(cmd *cobra.Command, flags setting.Flags, do func(ctx context.Context, s *config.Settings, args []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := config.Load(c.Process, flags, c.server)
		if err != nil {
			return err
		}
		return do(cmd.Context(), s, args)
	}
	return cmd
}

// subcommandNames returns the names of the subcommands that are not hidden.
func subcommandNames(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

func wantsCommand(cmd *cobra.Command, args []string) error {
	names := subcommandNames(cmd)
	switch {
	case len(args) == 0:
		return cli.Usagef("%q wants a command: %s; see \"%s --help\"", cmd.CommandPath(), cli.Quoted(names), cmd.CommandPath())
	case cli.Nearest(args[0], names) != "":
		return cli.Usagef("unknown command %q: did you mean \"%s %s\"?", args[0], cmd.CommandPath(), cli.Nearest(args[0], names))
	}
	return cli.Usagef("unknown command %q: write %s; see \"%s --help\"", args[0], cli.Quoted(names), cmd.CommandPath())
}

// noArguments refuses arguments, other than a server after "--".
func noArguments(cmd *cobra.Command, args []string) error {
	takes := "no arguments"
	switch {
	case len(args) == 0:
		return nil
	case cmd.Annotations[mayTakeServer] != "":
		takes = "flags, and the server's command or URL after \"--\""
	}
	return cli.Usagef("unexpected %q: %q takes %s; see \"%s --help\"", args[0], cmd.CommandPath(), takes, cmd.CommandPath())
}

// oneArgument requires one argument. want describes it, and where to find it.
func oneArgument(cmd *cobra.Command, args []string, want string) error {
	if len(args) != 1 {
		return cli.Usagef("%q wants %s", cmd.CommandPath(), want)
	}
	return nil
}
