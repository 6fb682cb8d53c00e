package main

import "github.com/spf13/cobra"

// subcommands returns attache's own commands, in no order: help sorts them.
func (c *cli) subcommands() []*cobra.Command {
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
		c.trustCommand(),
		c.untrustCommand(),
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
		return usagef("%q wants a command: %s; see \"%s --help\"", cmd.CommandPath(), quoted(names), cmd.CommandPath())
	case nearest(args[0], names) != "":
		return usagef("unknown command %q: did you mean \"%s %s\"?", args[0], cmd.CommandPath(), nearest(args[0], names))
	}
	return usagef("unknown command %q: write %s; see \"%s --help\"", args[0], quoted(names), cmd.CommandPath())
}

// noArguments refuses arguments, saying what to do instead.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected %q: %q takes no arguments, see \"%s --help\"", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}
