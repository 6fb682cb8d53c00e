package assembly

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
)

// sessionKeys are the settings that say which session it is.
func sessionKeys() []string {
	return []string{"session.id", "session.workspace", "session.workspace_id", "session.trust"}
}

// SessionStart returns the flags and variables that say whose the session is and
// where. A recording keeps them, as it means something else without. What stands in
// the configuration is not among them: a recording is played through today's. Nor are
// credentials.
func SessionStart(p cli.Process, s *config.Settings) map[string]string {
	start := map[string]string{}
	values := config.Values(s)
	for _, key := range sessionKeys() {
		if name := s.Origin(key).Name; name != "" && !strings.ContainsFunc(name, unicode.IsSpace) {
			start[name] = values[key]
		}
	}
	for _, name := range slices.Concat(s.Session.HostEnv.Session, s.Session.HostEnv.Workspace, []string{config.UserVariable, config.TenantVariable}) {
		if v := p.Getenv(name); v != "" {
			start[name] = v
		}
	}
	return start
}

// RecordedProcess returns the process in which a recording is played with the settings s. It has
// what the session was started with, as variables, so that flags of today stand above
// them. The file may be anybody's, so only what says which session it is is taken from it: a
// variable that names a policy endpoint would send the user's key there.
func RecordedProcess(p cli.Process, h record.Header, s *config.Settings) cli.Process {
	flags, variables := sessionNames(s)
	var env []string
	for _, name := range slices.Sorted(maps.Keys(h.Start)) {
		if variable, isFlag := flags[name]; isFlag {
			env = append([]string{variable + "=" + h.Start[name]}, env...)
		} else if slices.Contains(variables, name) {
			env = append(env, name+"="+h.Start[name])
		}
	}
	p.Env = append(env, p.Env...) // the first counts
	return p
}

// sessionNames returns the flags that say whose session it is and where, each with its
// variable, and all variables that do.
func sessionNames(s *config.Settings) (flags map[string]string, variables []string) {
	flags = map[string]string{}
	variables = slices.Concat(s.Session.HostEnv.Session, s.Session.HostEnv.Workspace, []string{config.UserVariable, config.TenantVariable})
	for _, o := range config.Options(&config.Settings{}) {
		if !slices.Contains(sessionKeys(), o.Key) {
			continue
		}
		flags["--"+o.Flag] = o.Variable()
		variables = append(variables, o.Variable())
		for _, prefix := range append([]string{setting.Prefix}, s.Session.EnvPrefixes...) {
			variables = append(variables, prefix+"_"+o.Injected)
		}
	}
	return flags, variables
}

// ForRecording returns the options of a connection that plays the recording: what was
// random then is as it was, and what would be today is the same each time.
func ForRecording(s *record.Session) ConnOptions {
	return ConnOptions{IDPrefix: cmp.Or(s.Header.IDPrefix, ownIDs), Replayed: parentsOf(s)}
}

// parentsOf returns what gives the traceparent that a request of the recording reached
// the server with, by its raw id: of several requests with one id, one after the other.
func parentsOf(s *record.Session) func(id []byte) string {
	parents := map[string][]string{}
	note := func(v wire.Value) {
		if id := v.Get("id"); id.Exists() && v.Get("method").Exists() {
			parents[string(id.Raw)] = append(parents[string(id.Raw)], v.Get("params", "_meta", "traceparent").Text())
		}
	}
	for _, e := range s.Events {
		v := wire.Value{Raw: e.Line}
		switch {
		case e.At != record.ServerIn:
		case v.IsArray():
			for member := range v.Elements() {
				note(member)
			}
		default:
			note(v)
		}
	}
	return func(id []byte) string {
		all := parents[string(id)]
		if len(all) == 0 {
			return ""
		}
		parents[string(id)] = all[1:]
		return all[0]
	}
}

// ownIDs begins the ids of attache's own requests where a recording does not say.
const ownIDs = "attache-"
