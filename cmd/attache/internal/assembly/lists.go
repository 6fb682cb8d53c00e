package assembly

import (
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// principalLists returns the lists that depend on the principal of the session.
func principalLists(s *config.Settings) (lists []announce.List) {
	if s.DryRun {
		return nil
	}
	uses := func(p *expression.Program) bool { return p != nil && p.UsesPrincipal() }
	for i := range s.Rewrite {
		if r := &s.Rewrite[i]; uses(r.When) && r.Hide {
			return []announce.List{announce.Tools, announce.Prompts, announce.Resources}
		}
	}
	if slices.ContainsFunc(s.Rewrite, func(r rewrite.Rule) bool { return uses(r.When) }) ||
		slices.ContainsFunc(s.Arguments, func(r arguments.Rule) bool { return uses(r.When) }) ||
		s.Access.Hide && slices.ContainsFunc(s.Access.Rules, func(r access.Rule) bool { return len(r.Require) > 0 || uses(r.When) }) {
		lists = append(lists, announce.Tools)
	}
	return lists
}
