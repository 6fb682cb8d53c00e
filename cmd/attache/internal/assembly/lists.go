package assembly

import (
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/rewrite"
)

// principalLists returns the lists that depend on the principal of the session.
func principalLists(s *config.Settings) (lists []announce.List) {
	if s.DryRun {
		return nil
	}
	for i := range s.Rewrite {
		if r := &s.Rewrite[i]; r.When.UsesPrincipal() && r.Hide {
			return []announce.List{announce.Tools, announce.Prompts, announce.Resources}
		}
	}
	if slices.ContainsFunc(s.Rewrite, func(r rewrite.Rule) bool { return r.When.UsesPrincipal() }) ||
		slices.ContainsFunc(s.Arguments, func(r arguments.Rule) bool { return r.When.UsesPrincipal() }) ||
		s.Access.Hide && slices.ContainsFunc(s.Access.Rules, func(r access.Rule) bool { return len(r.Require) > 0 || r.When.UsesPrincipal() }) {
		lists = append(lists, announce.Tools)
	}
	return lists
}
