package doctor

import (
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate"
)

// identityTime bounds how long an issuer is waited for.
const identityTime = 30 * time.Second

// principalText says who p is, in the words of the configuration.
func principalText(p *sessionstate.Principal) string {
	var parts []string
	for _, f := range []struct{ name, value string }{
		{"user", p.User}, {"tenant", p.Tenant}, {"scope", p.Scope},
		{"roles", strings.Join(p.Roles, " ")}, {"plan", p.Plan}, {"trust", p.Trust}, {"key", p.KeyID},
	} {
		if f.value != "" {
			parts = append(parts, f.name+" "+f.value)
		}
	}
	return strings.Join(parts, ", ")
}

// contents counts what holds.
func contents(e policy.Effective) string {
	policies := cli.Itoa(len(e.Policies)) + " policies"
	if len(e.Policies) == 1 {
		policies = "1 policy"
	}
	return policies + " and " + cli.Plural(len(e.Objectives), "objective")
}
