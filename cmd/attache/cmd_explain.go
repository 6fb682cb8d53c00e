package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/explain"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
)

const explainHelp = `Show what would happen to a call under today's configuration: the facts of the
session and their sources, each layer in order, each rule with its inputs and whether
it applied, each edit as a diff, and what the server or the model would get.

Give the call with --tool and --arguments, as a frame in a file, or as a recorded
session, in which every tools/call is explained. No tool is called, no file written,
and no audit record made; the policy source is asked as in a session.

The result may depend on the tool's schema. The server whose command is after "--"
is started and asked for its tools. With --tools, a file with a saved answer to
tools/list, it is not started: its command then only selects entries of "servers".
--server explains a call to the server of an entry, as "attache serve" starts it.
Without any of these, the tool is assumed to have every argument that a rule names.

The exit status is 0 if the call would reach the server, 1 if it would be refused
or dropped (of a recording: if any call would), 2 for a mistake in flags, files or
configuration, and 127 when the server cannot be started or does not list its tools.`

const explainExamples = `  attache explain --workspace /src/app --tool git_status -- npx -y @cyanheads/git-mcp-server
  attache explain --tool write_file --arguments '{"path": "/etc/passwd"}'
  attache explain --frame session.jsonl --call 3
  attache explain --chain`

func (c *program) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:         "explain (--tool NAME | --frame FILE | --chain) [flags] [-- COMMAND [ARG...]]",
		Short:       "Show what would happen to a call: each rule, its inputs, the edit as a diff",
		Long:        explainHelp,
		Example:     explainExamples,
		Args:        noArguments,
		Annotations: map[string]string{mayTakeServer: "yes"},
	}
	var e explain.Request
	f := cmd.Flags()
	f.StringVar(&e.Tool, "tool", "", "the `NAME` of the tool that is called")
	f.StringVar(&e.Arguments, "arguments", "", "its arguments, a `JSON` object")
	f.StringVar(&e.Meta, "meta", "", "the request's _meta, a `JSON` object")
	f.StringVar(&e.Frame, "frame", "", "a `FILE` with a frame or a recorded session; \"-\" is stdin")
	f.IntVar(&e.Call, "call", 0, "explain only the `N`th tools/call of a recorded session")
	f.StringVar(&e.Tools, "tools", "", "a `FILE` with a saved answer to tools/list")
	f.StringVar(&e.Entry, "server", "", "the `NAME` of an entry of servers with a command or URL, instead of a server after \"--\"")
	f.StringVar(&e.Era, "era", "", "the protocol `ERA` of the call of --tool: legacy (with a handshake; the default) or modern (2026-07-28)")
	_ = cmd.RegisterFlagCompletionFunc("era", cobra.FixedCompletions([]string{"legacy", "modern"}, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&e.JSON, "json", false, "print JSON instead of text")
	f.BoolVar(&e.Chain, "chain", false, "print the layers in order, and nothing else")
	flags := config.AddFlags(cmd)
	for _, name := range []string{"record", "dry-run", "stdout-noise"} {
		_ = f.MarkHidden(name)
	}
	return c.withSettings(cmd, flags, func(ctx context.Context, s *config.Settings, _ []string) error {
		if err := e.Check(); err != nil {
			return err
		}
		if s.DryRun && !e.Chain {
			fmt.Fprintln(c.Stderr, "attache: dry_run is set: a session only logs what is shown here, and every message passes unchanged")
		}
		x := &explain.Explainer{Process: c.Process, Dashed: c.dashed, Server: c.server, Request: e, Settings: config.Inert(s), Flags: flags}
		x.Settings.DryRun = s.DryRun && e.Chain // a call is explained as if the rules acted
		if s.Origin("log.level").Default() {
			x.Settings.Log.Level = "warn" // the explanation shows what would be logged at info
		}
		x.Log = logging.New(c.Process, x.Settings, c.Stderr)
		return x.Run(ctx)
	})
}
