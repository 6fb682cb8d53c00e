package assembly

import (
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/arguments"
)

// ArgumentRules returns the configured rules, or the built-in one.
func ArgumentRules(s *config.Settings) []arguments.Rule {
	if s.Arguments == nil {
		return []arguments.Rule{arguments.Default()}
	}
	var rules []arguments.Rule
	for _, r := range s.Arguments {
		rules = append(rules, arguments.Rule{
			Name:     r.Name,
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
