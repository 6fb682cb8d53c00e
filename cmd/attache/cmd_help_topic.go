package main

import (
	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// helpCommand prints the help of a command. Unlike cobra's own, it refuses an unknown command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Print the help of a command",
		Long:  "Print the help of a command, the same as COMMAND --help.",
		Example: `  attache help
  attache help policy show`,
		RunE: func(cmd *cobra.Command, words []string) error {
			at := cmd.Root()
			for i, word := range words {
				sub, rest, err := at.Find(words[i : i+1])
				if err != nil || len(rest) > 0 || sub == at {
					return unknownTopic(at, word)
				}
				at = sub
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

// unknownTopic returns an error that lists the commands.
func unknownTopic(parent *cobra.Command, word string) error {
	var names []string
	for _, sub := range parent.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	switch near := cli.Nearest(word, names); {
	case len(names) == 0:
		return cli.Usagef("%q has no command %q: see \"%s --help\"", parent.CommandPath(), word, parent.CommandPath())
	case near != "":
		return cli.Usagef("unknown command %q: did you mean \"%s help %s\"?", word, parent.Root().Name(), near)
	}
	return cli.Usagef("unknown command %q: write %s", word, cli.Quoted(names))
}
