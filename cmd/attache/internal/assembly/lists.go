package assembly

import (
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/rewrite"
)

// principalLists returns the lists that depend on the principal of the session: the client must ask for them again
// when another principal becomes known. If the rules only change how tools are described or called, it leaves out the
// lists of prompts and resources. In a dry run, lists do not change.
func principalLists(s *config.Settings) []announce.List {
	if s.DryRun {
		return nil
	}
	// The patterns of hide are for the names of prompts and the URIs of resources too.
	if slices.ContainsFunc(s.Rewrite, func(r rewrite.Rule) bool { return r.Hide && r.When.UsesPrincipal() }) {
		return []announce.List{announce.Tools, announce.Prompts, announce.Resources}
	}
	if slices.ContainsFunc(s.Rewrite, func(r rewrite.Rule) bool { return r.When.UsesPrincipal() }) ||
		slices.ContainsFunc(s.Arguments, func(r arguments.Rule) bool { return r.When.UsesPrincipal() }) ||
		s.Access.Hide && slices.ContainsFunc(s.Access.Rules, func(r access.Rule) bool { return len(r.Require) > 0 || r.When.UsesPrincipal() }) {
		return []announce.List{announce.Tools}
	}
	return nil
}
