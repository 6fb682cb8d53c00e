package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// InjectSettings configure which servers "attache inject" writes to, by their names in the
// client's configuration, and for which workspaces, by their ids.
type InjectSettings struct {
	Servers    map[string]ServerRule
	Workspaces map[string]WorkspaceRule
}

// A ServerRule says which sessions get a server of a client's configuration.
type ServerRule struct {
	Trust string // "direct": for direct sessions alone; "sandboxed": for all
}

// A WorkspaceRule says which servers and variables the sessions of a workspace get.
type WorkspaceRule struct {
	Servers []string                     // nil: all
	Env     map[string]map[string]string // variables by server
}

func (s *Settings) injectOptions() []setting.Option {
	return []setting.Option{
		{Key: "inject.servers", Help: "which sessions get a server from \"attache inject\", by the server's name in the client's configuration",
			Value: setting.ByName[ServerRule]{To: &s.Inject.Servers, Value: serverRule, Check: setting.NotEmpty}},
		{Key: "inject.workspaces", Help: "which servers and variables the sessions of a workspace get from \"attache inject\", by the workspace's id",
			Value: setting.ByName[WorkspaceRule]{To: &s.Inject.Workspaces, Value: workspaceRule, Check: CheckSlug}},
	}
}

func serverRule(r *ServerRule) setting.Value {
	return setting.Object{Options: []setting.Option{
		{Key: "trust", Help: "the least trust a session must have to get the server: direct, or sandboxed for every session", Value: setting.Choice(&r.Trust, TrustLevels()...)},
	}, Example: "github: {trust: direct}"}
}

func workspaceRule(r *WorkspaceRule) setting.Value {
	return setting.Object{Options: []setting.Option{
		{Key: "servers", Help: "the only servers that sessions of the workspace get; without this key: all", Value: setting.Words{To: &r.Servers}},
		{Key: "env", Help: "variables for single servers, in place of those in their entries", Value: setting.ByName[map[string]string]{
			To: &r.Env, Value: variables, Check: func(string) error { return nil },
		}},
	}, Example: "my-project: {servers: [git, github], env: {github: {GITHUB_OWNER: acme}}}"}
}

// longestSlug is the maximum length of an id, which other programs often use as the name of a file
// or store in a column.
const longestSlug = 128

// CheckSlug returns an error if s is not a valid id of a workspace. An id has only characters that
// are safe in the name of a file, in an address and in a shell, so that servers need not escape it.
func CheckSlug(s string) error {
	return plainID("workspace id", s, "._-")
}

// CheckSessionKey returns an error if s is not a valid id of a session, in one of the forms that
// hosts use.
func CheckSessionKey(s string) error {
	return plainID("session id", s, "._-:")
}

// plainID returns an error unless s consists of letters, digits and the characters of more, and
// begins with a letter or digit.
func plainID(what, s, more string) error {
	if s == "" {
		return errors.New("the " + what + " is empty: give one")
	}
	invalid := func(c rune) bool { return !isPlain(c) && !strings.ContainsRune(more, c) }
	if len(s) > longestSlug || !isPlain(rune(s[0])) || strings.ContainsFunc(s, invalid) || strings.Contains(s, "..") {
		return fmt.Errorf("%q is not a %s: write at most %d letters, digits and %s, a letter or digit first", cli.Elided(s), what, longestSlug, strings.Join(strings.Split(more, ""), " "))
	}
	return nil
}

func isPlain(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
