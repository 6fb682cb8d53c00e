package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// UnknownVariables returns a message for each variable with attache's prefix that attache does not
// read.
func UnknownVariables(p cli.Process, s *Settings) []string {
	known := []string{APIKeyVariable, clientconfig.EntryVariable, TokenVariable, "ATTACHE_CONFIG", SessionTokenVariable, ParentVariable, MarkVariable, "ATTACHE_USER_ID", "ATTACHE_TENANT_ID", s.Policy.TokenEnv, s.Store.URL.Env}
	known = append(known, s.RemoteVariables()...)
	for _, o := range Options(s) {
		if o.Flag != "" {
			known = append(known, o.Variable())
		}
		if o.Injected != "" {
			known = append(known, setting.Prefix+"_"+o.Injected)
		}
	}
	known = append(known, HeaderVariables(p.Env)...)
	var texts []string
	for _, entry := range p.Env {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, setting.Prefix+"_") || slices.Contains(known, name) {
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

// MarkVariable marks the session's variables that attache gives to a server; see [SessionSettings.Mark].
const MarkVariable = setting.Prefix + "_INJECTED"

// Prefixes returns the prefixes of the session's variables: attache's own, and the configured ones.
func (s SessionSettings) Prefixes() []string {
	return append([]string{setting.Prefix}, s.EnvPrefixes...)
}

// Mark returns the value of [MarkVariable] for a server with the variables of getenv: a digest of the
// session's variables, and one of those in which clients give servers their session and workspace. If
// only the second differs later, the server, or a program that it runs, has started another client,
// whose session and workspace are its own.
func (s SessionSettings) Mark(getenv func(string) string) string {
	host := DefaultSettings("").Session.HostEnv // of all processes alike
	return digest(getenv, s.variables()) + "-" + digest(getenv, slices.Concat(host.Session, host.Workspace))
}

func (s SessionSettings) variables() (names []string) {
	for _, prefix := range s.Prefixes() {
		names = append(names, prefix+"_SESSION_ID", prefix+"_WORKSPACE_ID", prefix+"_WORKSPACE_PATH")
	}
	return names
}

// digest returns a short digest of the values of variables.
func digest(getenv func(string) string, names []string) string {
	h := sha256.New()
	for _, name := range names {
		h.Write([]byte(getenv(name) + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// WithoutOtherClient returns an environment without the session's variables if their values are for another
// client, in a server of which this one was started. It keeps the trust, because a session that was started
// in a sandboxed one is not more trusted.
func (s SessionSettings) WithoutOtherClient(env []string) []string {
	getenv := cli.Process{Env: env}.Getenv
	was, wasHost, marked := strings.Cut(getenv(MarkVariable), "-")
	own, host, _ := strings.Cut(s.Mark(getenv), "-")
	if !marked || own != was || host == wasHost {
		return env
	}
	names := s.variables()
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}
