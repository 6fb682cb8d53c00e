package main

import "github.com/spf13/cobra"

// subcommands returns attache's own commands, in no order: help sorts them.
func (c *cli) subcommands() []*cobra.Command {
	return append(c.unbuiltCommands(),
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
	)
}

// unbuiltCommands returns the commands that the design names and this version does
// not have. Refusing them by name is clearer than taking them for a misspelt one.
func (c *cli) unbuiltCommands() []*cobra.Command {
	var all []*cobra.Command
	for _, name := range []string{"trust", "untrust"} {
		all = append(all, &cobra.Command{
			Use:                name,
			Hidden:             true,
			DisableFlagParsing: true,
			Annotations:        map[string]string{takesServer: "yes"},
			RunE: func(cmd *cobra.Command, _ []string) error {
				return usagef("%q is not built yet in this version: see \"attache --help\" for what is", cmd.CommandPath())
			},
		})
	}
	return all
}

// group returns a command that only holds others.
func group(name, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
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
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(subs...)
	return cmd
}

// noArguments refuses arguments, saying what to do instead.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected %q: %q takes no arguments, see \"%s --help\"", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}
