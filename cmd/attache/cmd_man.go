//go:build man

package main

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// buildCommands returns the commands that only building packages needs. They are
// there with the tag man alone: what writes man pages is in no binary that is
// shipped.
func (c *program) buildCommands() []*cobra.Command {
	return []*cobra.Command{c.manCommand()}
}

// manCommand writes a man page for each command.
func (c *program) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a man page for each command to a directory",
		Example: `  SOURCE_DATE_EPOCH=0 go run -tags man ./cmd/attache man DIR`,
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			manual(root)
			// The date is SOURCE_DATE_EPOCH, so that a build can be repeated.
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "attache", Manual: "attache manual"}, args[0])
		},
	}
}

// manual makes of the help of cmd and the commands below it what belongs in a man
// page: the server's command, the environment and the exit status stand in the
// usage of "--help", which man pages do not have, and the flags are laid out as
// there.
func manual(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	cmd.Long = asMarkdown(cmp.Or(cmd.Long, cmd.Short+"."))
	cmd.InitDefaultHelpFlag()
	cmd.Long += "\n\n# OPTIONS\n\n    " + strings.ReplaceAll(cmd.LocalFlags().FlagUsagesWrapped(optionsWidth), "\n", "\n    ")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	if cmd.Annotations[takesServer] != "" {
		cmd.Use = cmd.Name() + " [flags] -- COMMAND [ARG...]"
		cmd.Long += "\n\n# ENVIRONMENT\n\n" + asMarkdown(helpEnvironment) + "\n\n# EXIT STATUS\n\n" + asMarkdown(helpExitStatus)
	}
	for _, sub := range slices.Clone(cmd.Commands()) {
		if sub.Hidden {
			cmd.RemoveCommand(sub)
			continue
		}
		manual(sub)
	}
}

// optionsWidth is how wide the list of flags may be for a terminal of 80 columns.
const optionsWidth = 70

// asMarkdown keeps the characters of text that mean something in Markdown, which the
// pages are made of. An indented line is taken as it is there.
func asMarkdown(text string) string {
	special := strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "`", "\\`", "[", `\[`, "]", `\]`)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			lines[i] = special.Replace(line)
		}
	}
	return strings.Join(lines, "\n")
}
