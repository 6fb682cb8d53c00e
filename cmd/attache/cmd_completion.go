package main

import (
	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

func (c *program) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a shell completion script for attache's commands and flags",
		Long: `Print a shell completion script for attache's commands and flags. Write it to the directory where
the shell looks for such scripts, and start a new shell. The server's command after "--" is
not completed. The script for bash needs the package bash-completion.`,
		Example: `  attache completion bash > /etc/bash_completion.d/attache
  attache completion zsh > "${fpath[1]}/_attache"
  attache completion fish > ~/.config/fish/completions/attache.fish`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("which shell? write one of %s after \"attache completion\"", cli.Quoted(shells))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(c.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(c.Stdout)
			case "fish":
				return root.GenFishCompletion(c.Stdout, true)
			}
			return cli.Usagef("unknown shell %q: write %s", args[0], cli.Quoted(shells))
		},
	}
}
