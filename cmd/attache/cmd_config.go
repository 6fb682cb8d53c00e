package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/filecheck"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
)

func (c *program) configCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "config",
		Short: "Check the configuration, show the values in force, print its schema",
		Long: `The configuration is one YAML file: the one of --config, else of ATTACHE_CONFIG, else
attache/config.yaml under the user's configuration directory, if it is there. It is never
looked for in the workspace. Every key can be left out.`,
		Example: `  attache config check
  attache config show --config ./attache.yaml
  attache config schema > attache.schema.json`,
	}, c.configCheck(), c.configShow(), c.configSchema())
}

// configCheck prints the mistakes in the configuration and in the files that it names. They
// go to stdout because they are the result of the command.
func (c *program) configCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [flags] [-- COMMAND [ARG...]]",
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
			fmt.Fprintln(c.Stdout, "ok:", s.NoFile())
		default:
			fmt.Fprintln(c.Stdout, "ok:", s.File)
		}
		for _, e := range s.Applied {
			fmt.Fprintf(c.Stdout, "ok: servers.%s applies to this server (%v)\n", e.Name, e.From)
		}
		var names []string
		for _, e := range s.Unmatched(c.server) {
			if e.ByName() {
				names = append(names, fmt.Sprintf("servers.%s (%v)", e.Name, e.From))
				continue
			}
			fmt.Fprintf(c.Stdout, "note: servers.%s does not apply: it is for %v, and this server's command names no package: if it is meant for this server, start the server by a program of its own, and name that with command: in the match (%v)\n", e.Name, &e.Match, e.From)
		}
		if len(names) > 0 {
			fmt.Fprintf(c.Stdout, "note: no entry of servers applies to this server, whose name is %q; without a match are %s: if one is meant for it, add a match to the entry\n", s.Server.Name, strings.Join(names, ", "))
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

func (c *program) configShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [flags] [-- COMMAND [ARG...]]",
		Short: "Print every value in force and where it came from",
		Long: `Print every value in force, one a line: its key, the value, and its source: a flag, a
variable, a line of the file, or the default, which is faint on a terminal. Secrets are not
printed. With the flags of a client's entry it shows the values for that entry; with a server's
command after "--", those for that server.`,
		Example: `  attache config show
  attache config show --config ./sentry.yaml --trust sandboxed
  attache config show -- npx -y @cyanheads/git-mcp-server`,
		Args:        noFile,
		Annotations: map[string]string{mayTakeServer: "yes"},
	}
	return c.withSettings(cmd, config.AddFlags(cmd), func(_ context.Context, s *config.Settings, _ []string) error { return c.show(s) })
}

// longValue is the length up to which a value widens the column of values.
const longValue = 60

// show prints s as a table, one value a line. On a terminal the defaults are dim.
func (c *program) show(s *config.Settings) error {
	type row struct {
		key, value, from string
		dim              bool
	}
	var rows []row
	for _, o := range config.Options(s) {
		if o.Key == "" {
			continue
		}
		entries := o.Entries()
		for _, e := range entries {
			rows = append(rows, row{e.Name, cli.Printable(e.Text), s.Origin(e.Name).String(), false})
		}
		if len(entries) > 0 {
			continue
		}
		text := o.Shown()
		at := s.Origin(o.Key)
		rows = append(rows, row{o.Key, cmp.Or(cli.Printable(text), `""`), at.String(), at.Default()})
	}
	for _, e := range s.Servers {
		text := cmp.Or(cli.Printable(e.Match.String()), "the server of this name")
		if slices.ContainsFunc(s.Applied, func(a config.Server) bool { return a.From == e.From }) {
			text += ", applies to this server"
		}
		rows = append(rows, row{"servers." + e.Name, text, e.From.String(), false})
	}
	for _, fact := range s.OperatorFacts() {
		rows = append(rows, row{fact[0], cli.Printable(fact[1]), fact[2], false})
	}
	keys, values := 0, 0
	for _, r := range rows {
		keys = max(keys, utf8.RuneCountInString(r.key))
		if n := utf8.RuneCountInString(r.value); n <= longValue {
			values = max(values, n)
		}
	}
	out := bufio.NewWriter(c.Stdout)
	coloured := term.HasColour(c.Getenv, c.Stdout)
	for _, r := range rows {
		line := fmt.Sprintf("%-*s  %-*s  %s", keys, r.key, values, r.value, r.from)
		fmt.Fprintln(out, term.Paint(r.dim && coloured, term.Quiet, line))
	}
	return out.Flush()
}

func (c *program) configSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file, for editors",
		Long: `Print the JSON Schema of the configuration file: every key with its purpose, its values and its
default. Editors with YAML support complete and check a file that names it in its first line:

    # yaml-language-server: $schema=./attache.schema.json`,
		Example: `  attache config schema > attache.schema.json`,
		Args:    noArguments,
		RunE:    func(*cobra.Command, []string) error { return term.WriteJSON(c.Stdout, config.Schema()) },
	}
}
