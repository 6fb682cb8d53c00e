package assembly

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
)

// sessionKeys returns the keys of the settings that identify a session. For all other keys, a replay uses the
// configuration of today.
func sessionKeys() []string {
	return []string{"session.id", "session.workspace", "session.workspace_id", "session.trust"}
}

// sessionVariables returns the names of the variables that identify a session and are not options.
func sessionVariables(s *config.Settings) []string {
	return slices.Concat(s.Session.HostEnv.Session, s.Session.HostEnv.Workspace, []string{config.UserVariable, config.TenantVariable})
}

// SessionStart returns the flags and variables that identify the session, its principal and its
// workspace. They are part of a recording, which means something else without them. Credentials
// and values in the configuration are left out: a replay uses the configuration at the time of the
// replay.
func SessionStart(p cli.Process, s *config.Settings) map[string]string {
	start := map[string]string{}
	values := config.Values(s)
	for _, key := range sessionKeys() {
		if name := s.Origin(key).Name; name != "" && !strings.ContainsFunc(name, unicode.IsSpace) {
			start[name] = values[key]
		}
	}
	for _, name := range sessionVariables(s) {
		if v := p.Getenv(name); v != "" {
			start[name] = v
		}
	}
	return start
}

// RecordedProcess returns the process in which a recording is replayed with the settings s. It has
// the flags and variables of the recording as variables, so that the flags of the replay take
// precedence. It uses only those that identify the session, because anybody may have written the
// file: a variable that names a policy endpoint would send the user's key there.
func RecordedProcess(p cli.Process, h record.Header, s *config.Settings) cli.Process {
	flags, variables := sessionNames(s)
	var env []string
	// A flag came before a variable in the recorded session, and the first entry counts, so flags are put in front.
	for _, name := range slices.Sorted(maps.Keys(h.Start)) {
		if variable, isFlag := flags[name]; isFlag {
			env = append([]string{variable + "=" + h.Start[name]}, env...)
		} else if slices.Contains(variables, name) {
			env = append(env, name+"="+h.Start[name])
		}
	}
	p.Env = append(env, p.Env...) // the first entry counts, so a variable of the process does not replace a recorded variable
	return p
}

// sessionNames returns the flags that identify a session, each with its variable, and all variables that
// identify a session. These include the variables that an outer attache sets for its server, under each prefix.
func sessionNames(s *config.Settings) (flags map[string]string, variables []string) {
	flags = map[string]string{}
	variables = sessionVariables(s)
	for _, o := range config.Options(&config.Settings{}) {
		if !slices.Contains(sessionKeys(), o.Key) {
			continue
		}
		flags["--"+o.Flag] = o.Variable()
		variables = append(variables, o.Variable())
		for _, prefix := range s.Session.Prefixes() {
			variables = append(variables, prefix+"_"+o.Injected)
		}
	}
	return flags, variables
}

// ForRecording returns the options of a connection that replays the recording. Random values are
// those of the recording, so every replay is the same.
func ForRecording(s *record.Session) ConnOptions {
	return ConnOptions{IDPrefix: cmp.Or(s.Header.IDPrefix, ownIDs), Replayed: parentsOf(s)}
}

// parentsOf returns a function that returns the traceparent with which the server received the
// recorded request with a raw id. For several requests with one id it returns them in order. Only one goroutine at a
// time may call the function, such as the goroutine that relays the client's messages.
func parentsOf(s *record.Session) func(id []byte) string {
	parents := map[string][]string{}
	note := func(v wire.Value) {
		if id := v.Get("id"); id.Exists() && v.Get("method").Exists() {
			parents[string(id.Raw)] = append(parents[string(id.Raw)], v.Get("params", "_meta", "traceparent").Text())
		}
	}
	// Read the lines that the server received, because the layer trace has set the traceparent in them.
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
