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
func (l *Layers) addArguments(s *config.Settings, log *slog.Logger) {
	rules := ArgumentRules(s)
	if len(rules) == 0 {
		return
	}
	a := arguments.New(arguments.Options{
		Rules:         rules,
		AskForMissing: s.Arguments != nil,
		Workspace:     l.Capture,
		Server:        s.Server.Name,
		Initialized:   l.Announce.Initialized,
		Scrub:         l.scrubbed(),
		Log:           log,
	})
	l.List = append(l.List, a.Layer())
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
