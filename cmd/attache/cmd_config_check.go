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

// configCheck finds the mistakes in the configuration, and in what it points to.
// It prints them on stdout: they are what was asked for.
func (c *program) configCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [flags]",
		Short: "Find the mistakes: file:line:column and what to do, exit status 2 if there are any",
		Example: `  attache config check
  attache config check --config ./sentry.yaml
  attache config check -- npx -y @cyanheads/git-mcp-server`,
		Long: `Read the configuration as attache would, with the flags and variables given, look at
the files it names, and print every mistake as file:line:column and what to do. With a server's
command behind "--" it also says which entries of servers apply to it. The exit status is 2 if
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
		c.warnOfVariables(s)
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
			fmt.Fprintln(c.Stdout, "ok: there is no configuration file, the defaults hold")
		default:
			fmt.Fprintln(c.Stdout, "ok:", s.File)
		}
		for _, e := range s.Applied {
			fmt.Fprintf(c.Stdout, "ok: servers.%s holds for this server (%v)\n", e.Name, e.From)
		}
		return nil
	}
	return cmd
}

// noFile refuses arguments. One that names a file is most likely the configuration.
func noFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() {
			return cli.Usagef("unexpected %q: name the configuration with --config, as in \"%s --config %s\"", args[0], cmd.CommandPath(), args[0])
		}
	}
	return noArguments(cmd, args)
}

// warnOfVariables prints the variables with attache's prefix that nothing reads.
func (c *program) warnOfVariables(s *config.Settings) {
	for _, text := range config.UnknownVariables(c.Process, s) {
		fmt.Fprintln(c.Stdout, "warning:", text)
	}
}
