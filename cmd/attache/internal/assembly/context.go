package assembly

import (
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/sessionstate"
)

// BaseContext returns what is known before the first frame. Except for the trust, the order of the steps
// does not matter: a fact never replaces one from a more trusted source (see sessionstate.Better). Trust has no such
// order between two settings of the operator, so spawnedTrust comes after it.
func BaseContext(p cli.Process, s *config.Settings) *sessionstate.Context {
	c := operatorContext(s)
	if s.Session.GitRoot {
		c = c.WithWorkspace(gitRoot())
	}
	c = c.WithWorkspace(hostFact(p, s.Session.HostEnv.Workspace)).
		WithSession(hostSession(p, s, ""))
	c = c.With(func(c *sessionstate.Context) { c.Trust = spawnedTrust(p, c.Trust) })
	return c.WithSession(operatorFact(s, "session.id", s.Session.ID))
}

// operatorContext returns what the operator sets for every session: its trust and its
// workspace.
func operatorContext(s *config.Settings) *sessionstate.Context {
	c := &sessionstate.Context{}
	trust := operatorFact(s, "session.trust", s.Session.Trust)
	if from := s.Origin("session.trust"); from.Default() || from == s.Operator.Origin() {
		trust.Source = sessionstate.None // the session file is read again, and its trust comes with its principal
	}
	return c.With(func(c *sessionstate.Context) { c.Trust = trust }).
		WithWorkspace(operatorFact(s, "session.workspace", s.Session.Workspace)).
		WithWorkspaceID(operatorFact(s, "session.workspace_id", s.Session.WorkspaceID))
}

// operatorFact returns a fact that a setting sets, with the flag, variable or line in which it was set. The fact is
// absent if value is "".
func operatorFact(s *config.Settings, key, value string) sessionstate.Fact {
	return sessionstate.Fact{Value: value, Source: sessionstate.Operator, From: s.Origin(key).String()}
}

// hostSession returns the session that the host's variables name for a client with that
// clientInfo.name, "" if it is not known yet. A shell of an agent has the agent's variable, which does
// not name the session of another agent that is started there: a Codex in a shell of Claude Code is not
// in the session of CLAUDE_CODE_SESSION_ID.
func hostSession(p cli.Process, s *config.Settings, client string) sessionstate.Fact {
	names := s.Session.HostEnv.Session
	if known := toolresult.ClientOf(client).Name; known != "" {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return slices.ContainsFunc(toolresult.Clients(), func(c toolresult.Client) bool { return c.Variable == name && c.Name != known })
		})
	}
	return hostFact(p, names)
}

// hostFact returns the value of the first variable that is set. It skips values that are not UTF-8,
// because a message cannot contain them.
func hostFact(p cli.Process, names []string) sessionstate.Fact {
	for _, name := range names {
		if v := p.Getenv(name); v != "" && utf8.ValidString(v) {
			return sessionstate.Fact{Value: v, Source: sessionstate.HostEnvironment, From: name}
		}
	}
	return sessionstate.Fact{}
}

// gitRoot returns the git root of the working directory. It does not run git, because a repository
// can configure programs that git runs. It returns no root whose path is not UTF-8, because a message
// cannot contain that path.
func gitRoot() sessionstate.Fact {
	dir, err := os.Getwd() // as the shell names it, if that is known
	if err != nil {
		return sessionstate.Fact{}
	}
	root := rootAbove(dir)
	// The directory may be a link into another repository, whose root is git's.
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		if its := rootAbove(target); !sameFile(root, its) {
			root = its
		}
	}
	if root == "" || !utf8.ValidString(root) {
		return sessionstate.Fact{}
	}
	return sessionstate.Fact{Value: root, Source: sessionstate.GitRoot, From: "session.git_root"}
}

// rootAbove returns dir or the nearest directory above it that has a .git, "" if none has. In a worktree or a submodule,
// .git is a file.
func rootAbove(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// sameFile reports whether two names are of one directory. A name of no directory, such as "", is not the same as
// any other name.
func sameFile(a, b string) bool {
	inA, errA := os.Stat(a)
	inB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(inA, inB)
}
