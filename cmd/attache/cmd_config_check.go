package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/filecheck"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// configCheck prints the mistakes in the configuration and in the files that it names. They
// go to stdout because they are the result of the command.
func (c *program) configCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [flags]",
		Short: "Find the mistakes: file:line:column and what to do, exit status 2 if there are any",
		Example: `  attache config check
  attache config check --config ./sentry.yaml
  attache config check -- npx -y @cyanheads/git-mcp-server`,
		Long: `Read the configuration as attache would, with the flags and variables given, read
the files it names, and print every mistake as file:line:column with what to do. With a server's
command after "--" it also says which entries of servers apply to it. The exit status is 2 if
there are mistakes; warnings do not change it.`,
		Args:        noFile,
		Annotations: map[string]string{mayTakeServer: "yes"},
	}
	flags := config.AddFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		s, err := config.Load(c.Process, flags, c.server)
		if err == nil {
			err = filecheck.Config(c.Process, flags, c.server, s)
		}
		for _, w := range s.Warnings {
			fmt.Fprintln(c.Stdout, "warning:", w)
		}
		for _, text := range config.UnknownVariables(c.Process, s) {
			fmt.Fprintln(c.Stdout, "warning:", text)
		}
		var mistakes setting.Problems
		switch {
		case errors.As(err, &mistakes):
			for _, m := range mistakes {
				fmt.Fprintln(c.Stdout, m)
			}
			return cli.ExitError(cli.ExitUsage)
		case err != nil:
			return err
		case s.File == "":
			fmt.Fprintln(c.Stdout, "ok: there is no configuration file, the defaults apply")
		default:
			fmt.Fprintln(c.Stdout, "ok:", s.File)
		}
		for _, e := range s.Applied {
			fmt.Fprintf(c.Stdout, "ok: servers.%s applies to this server (%v)\n", e.Name, e.From)
		}
		for _, e := range s.Unmatched(c.server) {
			fmt.Fprintf(c.Stdout, "note: servers.%s does not apply: it is for %v, and this server's command names no package: if it is meant for this server, add command: to its match (%v)\n", e.Name, &e.Match, e.From)
		}
		return nil
	}
	return cmd
}

// noFile refuses arguments. For the name of a file it suggests --config.
func noFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() {
			return cli.Usagef("unexpected %q: name the configuration with --config, as in \"%s --config %s\"", args[0], cmd.CommandPath(), args[0])
		}
	}
	return noArguments(cmd, args)
}
