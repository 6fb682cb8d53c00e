package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// InjectSettings say what "attache inject" does to which servers, by their names in
// the client's configuration, and for which workspaces, by their ids.
type InjectSettings struct {
	Servers    map[string]ServerRule
	Workspaces map[string]WorkspaceRule
}

// A ServerRule says for which sessions a server of a client's configuration is.
type ServerRule struct {
	Trust string // "direct": for direct sessions alone; "sandboxed": for all
}

// A WorkspaceRule says which servers the sessions of a workspace get, and how.
type WorkspaceRule struct {
	Servers []string // nil: all
	// Env are variables by the server they are for.
	Env map[string]map[string]string
}

func injectOptions(s *Settings) []option {
	return []option{
		{Key: "inject.servers", Help: "which sessions get a server from \"attache inject\", by the server's name in the client's configuration",
			value: byName[ServerRule]{to: &s.Inject.Servers, value: serverRule, check: notEmpty}},
		{Key: "inject.workspaces", Help: "which servers and variables the sessions of a workspace get from \"attache inject\", by the workspace's id",
			value: byName[WorkspaceRule]{to: &s.Inject.Workspaces, value: workspaceRule, check: CheckSlug}},
	}
}

func serverRule(r *ServerRule) value {
	return object{[]option{
		{Key: "trust", Help: "the least trust a session must have to get the server: direct, or sandboxed for every session", value: choice{&r.Trust, TrustLevels()}},
	}, "github: {trust: direct}"}
}

func workspaceRule(r *WorkspaceRule) value {
	return object{[]option{
		{Key: "servers", Help: "the only servers that sessions of the workspace get; without this key: all", value: words{to: &r.Servers}},
		{Key: "env", Help: "variables for single servers, over what their entries say", value: byName[map[string]string]{
			to: &r.Env, value: variables, check: func(string) error { return nil },
		}},
	}, "my-project: {servers: [git, github], env: {github: {GITHUB_OWNER: acme}}}"}
}

// longestSlug is how long an id may be. It is often the name of a file or a
// column elsewhere.
const longestSlug = 128

// CheckSlug accepts the id of a workspace: what is safe as the name of a file, in an
// address and in a shell, so that servers need not escape it.
func CheckSlug(s string) error {
	return plainID("workspace id", s, "._-")
}

// CheckSessionKey accepts the id of a session: those that hosts make, and no more.
func CheckSessionKey(s string) error {
	return plainID("session id", s, "._-:")
}

// plainID accepts letters, digits and the characters of more, beginning with a
// letter or digit.
func plainID(what, s, more string) error {
	if s == "" {
		return errors.New("the " + what + " is empty: give one")
	}
	strange := func(c rune) bool { return !isPlain(c) && !strings.ContainsRune(more, c) }
	if len(s) > longestSlug || !isPlain(rune(s[0])) || strings.ContainsFunc(s, strange) || strings.Contains(s, "..") {
		return fmt.Errorf("%q is no %s: write at most %d letters, digits and %s, a letter or digit first", cli.Elided(s), what, longestSlug, strings.Join(strings.Split(more, ""), " "))
	}
	return nil
}

func isPlain(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
