package assembly

import (
	"log/slog"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/arguments"
)

// addArguments adds the layer that gives tool arguments their values, unless the
// configuration has an empty list of rules for it.
func (l *Layers) addArguments(s *config.Settings, log *slog.Logger) error {
	rules := ArgumentRules(s)
	if len(rules) == 0 {
		return nil
	}
	shared, err := arguments.Compile(arguments.Options{Rules: rules, Server: s.Server.Name, Scrub: l.scrubbed()})
	if err != nil {
		return err
	}
	c := shared.Connect(arguments.ConnOptions{Catalog: &l.State.catalog, Workspace: l.Capture, Log: log})
	l.List = append(l.List, c.Layer())
	return nil
}

// ArgumentRules returns the configured rules, or the built-in one.
func ArgumentRules(s *config.Settings) []arguments.Rule {
	if s.Arguments == nil {
		return []arguments.Rule{arguments.Default()}
	}
	var rules []arguments.Rule
	for i, r := range s.Arguments {
		rules = append(rules, arguments.Rule{
			Name:     "arguments[" + cli.Itoa(i) + "]",
			Tools:    r.Tools,
			Argument: strings.Split(r.Argument, "."),
			Mode:     arguments.Mode(r.Mode),
			Value:    r.Value,
			When:     r.When,
			Schema:   arguments.Schema(r.Schema),
			Required: r.Required,
		})
	}
	return rules
}
