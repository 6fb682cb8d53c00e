package agents

import (
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// environment returns the environment of an agent: that of this process, without attache's secrets
// and without the variables that identify the parent's session, and with those that identify the
// agent's session.
func (l *Launcher) environment(agent config.Agent, s *teams.Session, secrets Secrets, view *sessionstate.Context) []string {
	settings := l.Settings()
	withheld := assembly.OwnVariables(settings)
	if agent.Key == "inherit" {
		for _, prefix := range settings.Session.Prefixes() {
			withheld = slices.DeleteFunc(withheld, func(name string) bool { return name == prefix+"_API_KEY" })
		}
	}
	var out []string
	for _, entry := range assembly.Without(l.Process.Env, withheld...) {
		if name, _, _ := strings.Cut(entry, "="); !isSessionVariable(name, settings.Session) {
			out = append(out, entry)
		}
	}
	for _, v := range []struct{ suffix, value string }{
		{"_SESSION_ID", secrets.Key}, {"_WORKSPACE_ID", view.WorkspaceID.Value}, {"_WORKSPACE_PATH", view.Workspace.Value}, {"_TRUST_LEVEL", s.Trust},
	} {
		if v.value != "" {
			out = append(out, setting.Prefix+v.suffix+"="+v.value)
		}
	}
	if view.Workspace.Value != "" {
		out = append(assembly.Without(out, "PWD"), "PWD="+view.Workspace.Value)
	}
	return append(out, config.SessionTokenVariable+"="+secrets.Token, config.ParentVariable+"="+s.Parent)
}

// isSessionVariable reports whether a variable describes the session that started this process, and
// not the user or the machine.
func isSessionVariable(name string, s config.SessionSettings) bool {
	if slices.Contains(s.HostEnv.Session, name) || slices.Contains(s.HostEnv.Workspace, name) {
		return true
	}
	suffixes := []string{"_SESSION_ID", "_WORKSPACE_ID", "_WORKSPACE", "_WORKSPACE_PATH", "_TRUST_LEVEL", "_TRUST", "_SESSION", "_SESSION_PROOF", "_PARENT_SESSION_ID", "_RECORD", "_INJECTED"}
	own := func(prefix string) bool {
		suffix, ok := strings.CutPrefix(name, prefix)
		return ok && slices.Contains(suffixes, suffix)
	}
	if slices.ContainsFunc(s.Prefixes(), own) {
		return true
	}
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	// These configure the program for the user, for example its credential, its certificate for a gateway, and the
	// settings with which a company restricts it.
	userVariables := []string{
		"CLAUDE_CODE_CERT_STORE", "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_GIT_BASH_PATH", "CLAUDE_CODE_PROXY_RESOLVES_HOSTS",
		"CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_", "CLAUDE_CODE_SKIP_", "CLAUDE_CODE_DISABLE_", "CLAUDE_CODE_MAX_",
		"CODEX_HOME", "CODEX_SQLITE_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE",
		"GEMINI_CLI_HOME", "GEMINI_CLI_SYSTEM_", "GEMINI_CLI_TRUST",
	}
	return !slices.ContainsFunc(userVariables, begins) && slices.ContainsFunc([]string{"CLAUDECODE", "CLAUDE_CODE_", "CODEX_", "GEMINI_CLI"}, begins)
}
