package config

import (
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// UnknownVariables returns a message for each variable with attache's prefix that attache does not
// read.
func UnknownVariables(p cli.Process, s *Settings) []string {
	known := []string{APIKeyVariable, clientconfig.EntryVariable, TokenVariable, "ATTACHE_CONFIG", SessionTokenVariable, ParentVariable, MarkVariable, "ATTACHE_USER_ID", "ATTACHE_TENANT_ID", s.Policy.TokenEnv}
	for _, o := range Options(s) {
		if o.Flag != "" {
			known = append(known, o.Variable())
		}
		if o.Injected != "" {
			known = append(known, setting.Prefix+"_"+o.Injected)
		}
	}
	var texts []string
	for _, entry := range p.Env {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, setting.Prefix+"_") || strings.HasPrefix(name, clientconfig.HeaderPrefix) || strings.HasPrefix(name, clientconfig.EnvHeaderPrefix) || slices.Contains(known, name) {
			continue
		}
		what := "see \"attache --help\""
		if near := cli.Nearest(name, known); near != "" {
			what = "did you mean " + near + "?"
		}
		texts = append(texts, name+": no such variable is read: "+what)
	}
	return texts
}
