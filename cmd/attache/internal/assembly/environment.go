package assembly

import (
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate"
)

// OwnVariables returns the variables that go no further than this process: those
// with secrets, the one that would have a second attache write to the first one's
// recording, and those with which a server can put text of the user's before the
// model, unless the operator lets it.
func OwnVariables(s *config.Settings) []string {
	names := append(secretVariables(s), setting.Prefix+"_RECORD", config.SessionTokenVariable,
		// What the OTEL_ variables say of the collector's credentials.
		"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS")
	if !s.Server.PassMessaging {
		names = append(names, "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN")
	}
	for _, prefix := range s.Session.EnvPrefixes {
		names = append(names, prefix+"_API_KEY")
	}
	if s.Store.URL.Env != "" {
		names = append(names, s.Store.URL.Env)
	}
	if s.Policy.TokenEnv != "" {
		names = append(names, s.Policy.TokenEnv)
	}
	return names
}

// Environment returns the server's environment: our own without our secrets,
// what the operator set for the server, and the session's context under each
// prefix. What is known of the session replaces what we inherited under the
// same name: a flag stands above a variable, a trust level is normalised, and
// the tenant of a verified key is not a variable's to say. What is not known is
// left as inherited, so that a chain of attaches loses nothing. In a dry run the
// context is left out.
func (c *Conn) Environment(env []string) []string {
	shared := c.shared.Load()
	s := shared.settings
	set := func(name string) bool { _, ok := s.Server.Env[name]; return ok }
	context := c.Injected(env)
	if s.DryRun {
		context = nil
	}
	known := map[string]bool{}
	for _, entry := range context {
		known[variable(entry)] = true
	}
	withheld := shared.withheld
	if c.Client != nil { // a front: elsewhere another attache in a chain may need them
		withheld = slices.Concat(withheld, s.RemoteVariables())
	}
	out := make([]string, 0, len(env)+len(s.Server.Env)+len(context))
	for _, entry := range env {
		if name := variable(entry); !set(name) && !known[name] && !slices.Contains(withheld, name) {
			out = append(out, entry)
		}
	}
	for name, value := range s.Server.Env {
		out = append(out, name+"="+value)
	}
	return append(out, context...)
}

// Injected returns the session's context as it goes into the environment of a
// server that is started with env.
func (c *Conn) Injected(env []string) []string {
	s := c.Settings()
	set := func(name string) bool { _, ok := s.Server.Env[name]; return ok }
	inherited := map[string]bool{}
	for _, entry := range env {
		inherited[variable(entry)] = true
	}
	context := sessionstate.Environment(c.capture.Current(), s.Session.EnvPrefixes, set)
	return slices.DeleteFunc(context, func(entry string) bool {
		return strings.HasSuffix(entry, "=") && inherited[variable(entry)]
	})
}

// variable returns the name in an entry of an environment.
func variable(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}
