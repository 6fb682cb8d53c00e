package main

import (
	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/demo"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
)

// demoCommand shows attache at work. It needs no other program: client, server, policies and
// key are built in. It prints the messages that were really sent.
func (c *program) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show attache at work, every message before and after; no other program needed",
		Long: `Play sessions between a client and a server that are both in this program, through the same
layers as any other session, and print every message before and after, what was filled, injected
and refused, and why. The demo uses no network and leaves no files.`,
		Example: `  attache demo
  attache demo | less -R`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), c.Stdout, term.HasColour(c.Getenv, c.Stdout))
		},
	}
}
