package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// takesServer marks the commands that need a server after "--", mayTakeServer those for which
// it is optional. The latter describe it in their own help.
const (
	takesServer   = "attache-takes-server"
	mayTakeServer = "attache-may-take-server"
)

// rootHelp is for a person who has just heard of attache.
const rootHelp = `attache runs between an MCP client and a server. It knows the
workspace and the user of a session, fills in tool arguments that a call
leaves out, puts your policies in front of the first tool response, and lets every
other byte through unchanged.

Put it in front of a server in your client's configuration:

    before   "command": "npx",     "args": ["-y", "@cyanheads/git-mcp-server"]
    after    "command": "attache", "args": ["--", "npx", "-y", "@cyanheads/git-mcp-server"]

The words after "--" are the server's command, and are passed on unchanged.
Without any configuration attache fills the argument "workspace" of tools that
require its path, where the workspace is known. "attache demo" shows it at work.`

const rootExamples = `  attache demo                                     see what it does, no other program needed
  attache -- npx -y @cyanheads/git-mcp-server      wrap a server
  attache -- https://mcp.example.com/mcp           use a remote server
  attache wrap --all                               put attache in front of your clients' servers
  attache --workspace /src/app -- my-server        say what the session is about
  attache --policy ./policies --scope acme -- my-server
  attache policy show --policy ./policies --scope acme
  attache explain --tool git_status -- my-server   what would happen to a call
  attache --dry-run -- my-server                   decide and log everything, change nothing
  attache config check                             find mistakes in the configuration
  attache config show                              what is in force, and where it came from`

// Sections of the help and the man pages of commands that wrap a server.
const (
	helpEnvironment = `Each flag can also be given as a variable (--workspace-id is ATTACHE_WORKSPACE_ID)
or in the configuration file ("attache config schema"); a flag overrides a
variable, and a variable overrides the file. Also read: ATTACHE_API_KEY, the session's key;
ATTACHE_TOKEN or MCP_JWT, its token; MCP_USER_ID and MCP_TENANT_ID; and what another attache
injects: ATTACHE_SESSION_ID, ATTACHE_WORKSPACE_PATH, ATTACHE_WORKSPACE_ID, ATTACHE_TRUST_LEVEL.`
	helpExitStatus = `the server's; 1 when stdin or stdout fails; 2 for a mistake in
flags or configuration; 127 when the server cannot be started.`
)

// usage writes the usage of cmd like cobra, but with "--" and a section about the environment. It
// does not use text/template, which finds methods by name: the linker would keep every exported
// method of every type, and each start would take longer.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	wraps := cmd.Annotations[takesServer] != ""
	switch {
	case wraps:
		fmt.Fprintf(&b, "\n  %s [flags] -- COMMAND [ARG...]", cmd.CommandPath())
	case cmd.Runnable():
		fmt.Fprintf(&b, "\n  %s", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n  %s [command]", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\n\nExamples:\n%s", cmd.Example)
	}
	usageCommands(&b, cmd)
	if cmd.HasAvailableLocalFlags() {
		flags := strings.TrimRightFunc(cmd.LocalFlags().FlagUsages(), unicode.IsSpace)
		fmt.Fprintf(&b, "\n\nFlags:\n%s", flags)
	}
	if wraps {
		fmt.Fprintf(&b, "\n\n%s\n\nExit status: %s", helpEnvironment, helpExitStatus)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\nUse \"%s [command] --help\" for more about a command.", cmd.CommandPath())
	}
	b.WriteByte('\n')
	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

// usageCommands writes the commands below cmd.
func usageCommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	b.WriteString("\n\nCommands:")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(b, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
}

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
		root := parent.Root().Name()
		return cli.Usagef("unknown command %q: did you mean \"%s help%s %s\"?", word, root, strings.TrimPrefix(parent.CommandPath(), root), near)
	}
	return cli.Usagef("unknown command %q: write %s", word, cli.Quoted(names))
}
