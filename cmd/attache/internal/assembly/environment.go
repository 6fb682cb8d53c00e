package assembly

import (
	"maps"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate"
)

// OwnVariables returns the variables that attache uses itself and servers do not get. A server could send secrets to
// anybody. With ATTACHE_RECORD, a second attache would write to the recording of the first. With the variables of
// messaging, a server could write to the model as the user; the operator can allow that.
func OwnVariables(s *config.Settings) []string {
	names := []string{
		config.APIKeyVariable, config.TokenVariable, config.SessionTokenVariable, setting.Prefix + "_RECORD",
		// They hold the credentials for the collector.
		"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
	}
	if s.Identity.AcceptsTokens() {
		names = append(names, config.JWTVariable)
	}
	if !s.Server.PassMessaging {
		names = append(names, "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN")
	}
	for _, prefix := range s.Session.EnvPrefixes {
		names = append(names, prefix+"_API_KEY")
	}
	for _, name := range []string{s.Store.URL.Env, s.Policy.TokenEnv} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Environment returns the server's environment: env without secrets, the variables
// that the operator set for the server, and the session's context under each
// prefix. What is known about the session replaces an inherited variable of the
// same name: a flag takes precedence over a variable, a trust level is normalised,
// and a variable cannot override the tenant of a verified key. Variables for unknown
// facts are inherited, so that a chain of attaches loses nothing, unless they are
// another client's. They are marked, so that a client that the server starts does not
// pass them on as its own. A dry run leaves the context out.
func (c *Conn) Environment(env []string) []string { return c.FixedEnvironment(env)() }

// FixedEnvironment returns a function that returns, whenever it is called, what Environment
// returns now. An idle session keeps this function and not the list, which takes more memory.
func (c *Conn) FixedEnvironment(env []string) func() []string {
	shared, context := c.shared.Load(), c.Injected(env)
	// The settings are read now, because a restarted server must get the environment that it had before. The
	// function below must not refer to shared, because that would keep the compiled rules in memory.
	s, withheld := shared.settings, shared.withheld
	if s.DryRun {
		context = nil
	}
	return func() []string {
		without := slices.Concat(withheld, slices.Collect(maps.Keys(s.Server.Env)))
		if c.Client != nil { // only in a front: another attache in a chain may need them
			without = slices.Concat(without, s.RemoteVariables(), config.HeaderVariables(env))
		}
		// Remove these names before the context is appended: if a name has two entries, some programs read the
		// first and others the last.
		for _, entry := range context {
			without = append(without, variable(entry))
		}
		inherited := env
		if !s.DryRun {
			inherited = s.Session.WithoutOtherClient(env)
		}
		out := Without(inherited, without...)
		for name, value := range s.Server.Env {
			out = append(out, name+"="+value)
		}
		if out = append(out, context...); s.DryRun {
			return out
		}
		// The mark is a digest of variables in out, so it is made last.
		mark := config.MarkVariable + "=" + s.Session.Mark(cli.Process{Env: out}.Getenv)
		return append(Without(out, config.MarkVariable), mark)
	}
}

// Without returns env without the variables of these names. It copies env, which other sessions use too.
func Without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return cli.SameVariable(name, variable(entry)) })
	})
}

// Injected returns the session's context as variables for a server that is started with env. Injected leaves
// out the names in the operator's server.env. An empty variable says that the session has no workspace (see
// sessionstate.Environment). Injected leaves it out if env has a variable of the same name, so that the server
// inherits the variable of env.
func (c *Conn) Injected(env []string) []string {
	s := c.Settings()
	set := func(name string) bool { _, ok := s.Server.Env[name]; return ok }
	inherited := map[string]bool{}
	for _, entry := range s.Session.WithoutOtherClient(env) {
		inherited[variable(entry)] = true
	}
	context := sessionstate.Environment(c.capture.Current(), s.Session.EnvPrefixes, set)
	return slices.DeleteFunc(context, func(entry string) bool {
		return strings.HasSuffix(entry, "=") && inherited[variable(entry)]
	})
}

// variable returns the name of the variable in an entry of an environment.
func variable(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}
