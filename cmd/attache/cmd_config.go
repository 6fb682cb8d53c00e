package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
)

// configCommand checks and prints the configuration.
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

// configShow prints the values in force.
func (c *program) configShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [flags]",
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
		text := cli.Printable(e.Match.String())
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
		if r.dim && coloured {
			line = "\x1b[2m" + line + "\x1b[0m"
		}
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}

// configSchema prints the JSON Schema of the configuration file.
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
