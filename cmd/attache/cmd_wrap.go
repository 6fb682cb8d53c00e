package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/wrap"
)

func (c *program) wrapCommand() *cobra.Command {
	return c.wrapJob(false, &cobra.Command{
		Use:   "wrap [flags]",
		Short: "Put attache in front of the servers in clients' configuration files",
		Long: `Puts attache in front of the servers that a client starts: the server's command
moves after "--" in its arguments, and nothing else in the file changes. A backup
is kept in attache's state directory. "attache unwrap" restores the file byte for byte.

Flags of attache (--config, --workspace, --session and so on) go into the wrapped
entries, in front of the "--".

A remote server (Streamable HTTP) becomes "attache -- URL", and its headers become
variables of the entry. Servers of the older HTTP+SSE are skipped, and so are
those that are wrapped already. Disabled servers stay disabled.`,
		Example: `  attache wrap --all --dry-run               see what would change in the files of all clients
  attache wrap --all                         put attache in front of every server of yours
  attache wrap --client cursor               of one client: ` + strings.Join(wrap.ClientNames(), ", ") + `
  attache wrap --client zed --server git     in front of one server
  attache wrap --all --workspace /src/shop   with a flag of attache in each entry
  attache wrap --all --repair                attache has moved: start it from where it is now
  attache wrap --all --teams                 and add the server attache-teams
  attache wrap --project .                   in the files of a project that clients read
  attache wrap --file ./mcp.json             in any file`,
	})
}

func (c *program) unwrapCommand() *cobra.Command {
	return c.wrapJob(true, &cobra.Command{
		Use:   "unwrap [flags]",
		Short: "Remove attache from clients' configuration files again",
		Long: `Undoes "attache wrap". An entry that nobody has edited since gets its previous bytes
back, and the rest of the file does not change. Backups without anything that the
file lacks are removed.`,
		Example: `  attache unwrap --all                       take attache out of the files of all clients
  attache unwrap --client cursor --dry-run   see what would change
  attache unwrap --file ./mcp.json --server git`,
	})
}

// wrapJob makes cmd a command with the flags of a job that runs the job.
func (c *program) wrapJob(unwrap bool, cmd *cobra.Command) *cobra.Command {
	j := &wrap.Job{Unwrap: unwrap}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&j.All, "all", false, "the files of all clients that are there")
	f.StringArrayVar(&j.Clients, "client", nil, "the files of the client `NAME`: "+strings.Join(wrap.ClientNames(), ", ")+"; may be repeated")
	f.StringVar(&j.Project, "project", "", "the clients' files of the project in `DIR`, instead of the user's")
	f.StringArrayVar(&j.Files, "file", nil, "this `FILE`: JSON, with comments or without, or TOML; may be repeated")
	f.StringArrayVar(&j.Servers, "server", nil, "only the server `NAME`; may be repeated")
	f.BoolVar(&j.DryRun, "dry-run", false, "show what would change, and change nothing")
	f.StringVar(&j.Command, "command", "", "the `PATH` or name that clients start attache by; default: where it is, or its name in the files of a project")
	if !unwrap {
		f.BoolVar(&j.Teams, "teams", false, "add attache's own server, by which sessions create others and write to them; see \"attache teams --help\"")
		f.BoolVar(&j.NPX, "npx", false, "have clients start attache by npx, which installs it where it is missing")
		f.BoolVar(&j.Repair, "repair", false, "in entries that start attache already, replace how it is started; its flags stay")
		j.Flags = config.AddFlags(cmd)
	}
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(wrap.ClientNames(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Args = noArguments
	cmd.RunE = func(*cobra.Command, []string) error {
		for _, o := range []struct{ flag, value string }{{"project", j.Project}, {"command", j.Command}} {
			if f.Changed(o.flag) && o.value == "" {
				return cli.Usagef("--%s is empty: was it a variable that is not set?", o.flag)
			}
		}
		if j.NPX && j.Command != "" {
			return cli.Usagef("--npx and --command exclude each other: keep one")
		}
		j.Process = c.Process
		return j.Run()
	}
	return cmd
}
