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

// buildCommands returns the commands that only the build of packages needs. They need the tag
// man, so that no released binary has them.
func (c *program) buildCommands() []*cobra.Command {
	return []*cobra.Command{c.manCommand()}
}

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
			// The date is SOURCE_DATE_EPOCH, so that builds are reproducible.
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "attache", Manual: "attache manual"}, args[0])
		},
	}
}

// manual changes the help of cmd and its subcommands for man pages. Those have no usage, so it adds
// the server's command, the environment, the exit status, and the flags in the layout of --help.
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

// optionsWidth is the width of the list of flags, for a terminal of 80 columns.
const optionsWidth = 70

// asMarkdown escapes the characters of text that are special in Markdown, from which the pages are
// made. Indented lines are code and need no escapes.
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
