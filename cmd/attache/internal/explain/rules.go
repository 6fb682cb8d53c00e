package explain

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/sessionstate"
)

// factName matches the names of facts in a rule.
var factName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(session|principal)\.[a-z_]+(\.[a-z_]+)*`) })

// inputsOf returns the facts that a rule names, including unknown ones, and those that it uses without
// naming them.
func inputsOf(config string, facts []factReport) []factReport {
	names := factName().FindAllString(config, -1)
	if strings.Contains(config, "require: ") {
		names = append(names, "principal.permissions")
	}
	for per, name := range map[string]string{"user": "principal.user", "tenant": "principal.tenant", "session": "session.id"} {
		if strings.Contains(config, "per: "+per) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var inputs []factReport
	for _, name := range slices.Compact(names) {
		if i := slices.IndexFunc(facts, func(f factReport) bool { return f.Name == name }); i >= 0 {
			inputs = append(inputs, facts[i])
			continue
		}
		inputs = append(inputs, factReport{Name: name, Source: sessionstate.None.String()})
	}
	return inputs
}

// withConfig adds to x the entries of servers that apply, and to its notes the text and the place of
// their rules in the configuration.
func withConfig(x *callReport, s *config.Settings) {
	for _, e := range s.Applied {
		x.Servers = append(x.Servers, serverReport{e.Name, e.From.String()})
	}
	rules := config.RuleTexts(s)
	for i := range x.Layers {
		for j := range x.Layers[i].Notes {
			n := &x.Layers[i].Notes[j]
			n.Config = rules[n.Rule]
			if at := s.Origin(n.Rule); n.Config != "" {
				n.At = at.String()
			}
			if n.Why != string(access.OtherTools) { // a rule for other tools used no facts
				n.Inputs = inputsOf(n.Config, x.Facts)
			}
		}
	}
}
