package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/replays"
)

const replayHelp = `Play sessions that were recorded with --record through today's configuration, and
show every line that reaches the server or the client otherwise than it did then.

The client and the server of a recording are played from the file: no program is
started. The exit status is 1 if anything differs.`

func (c *program) replayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "replay FILE... [flags]",
		Short:   "Play recorded sessions through today's configuration, show every difference",
		Long:    replayHelp,
		Example: "  attache --record session.jsonl -- npx -y @cyanheads/git-mcp-server\n  attache replay session.jsonl",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("no recording to play: name the files, as in \"%s session.jsonl\"; \"attache --record session.jsonl -- COMMAND\" makes one", cmd.CommandPath())
			}
			return nil
		},
	}
	update := cmd.Flags().Bool("update", false, "rewrite the files with what comes out today")
	flags := config.AddFlags(cmd)
	_ = cmd.Flags().MarkHidden("record")
	return c.withSettings(cmd, flags, func(ctx context.Context, s *config.Settings, files []string) error {
		r := &replays.Replayer{Process: c.Process, Settings: s, Flags: flags, Update: *update, Log: logging.New(c.Process, s, c.Stderr)}
		return r.Run(ctx, files)
	})
}
