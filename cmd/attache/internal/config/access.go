package config

import (
	"github.com/attache-mcp/attache/cmd/attache/internal/rules"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/access"
)

// AccessSettings configure who may call which tool, and how often.
type AccessSettings struct {
	Default string // "allow" or "deny"
	Hide    bool
	Rules   []access.Rule
	Rates   []access.Rate
	// RatesDown says what happens to calls under Rates while the shared database does not answer.
	RatesDown access.Down
}

// Enforces reports whether the rules can refuse a call.
func (a *AccessSettings) Enforces() bool {
	return len(a.Rules) > 0 || len(a.Rates) > 0 || a.Default == string(access.Deny)
}

func accessOptions(s *Settings) []setting.Option {
	o := &s.Access
	return []setting.Option{
		{Key: "access.default", Help: "what happens to a call that no rule decides", Value: setting.Choice(&o.Default, string(access.Allow), string(access.Deny))},
		{Key: "access.hide", Help: "leave tools that may not be called out of tools/list", Value: setting.Bool(&o.Hide)},
		{Key: "access.rules", Help: "who may call what; the first rule that applies decides", Value: rules.Access(&o.Rules)},
		{Key: "access.rates", Help: "how often tools may be called", Value: rules.Rates(&o.Rates)},
		{Key: "rates.down", Help: "what happens to calls under a rate while the database of store.url does not answer: share counts them in each process, which has its share of the limit; closed refuses them",
			Value: setting.Choice((*string)(&o.RatesDown), string(access.DownShare), string(access.DownClosed))},
	}
}
