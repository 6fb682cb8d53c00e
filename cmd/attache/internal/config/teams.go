package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// TeamsSettings say whether sessions may create others and write to them.
type TeamsSettings struct {
	Enabled bool
	Limits  teams.Limits
	Replies string   // "parent" or "none"
	Wake    []string // of "claude-inbox"
}

// ClaudeInbox wakes a session of Claude Code by the inbox that it gives its servers.
const ClaudeInbox = "claude-inbox"

// An Agent is a template of the operator's: how a session that another creates is run.
type Agent struct {
	Command, Resume []string // Resume is nil if the agent cannot be resumed
	Result          string   // "claude-json", "codex-jsonl", "gemini-json" or "text"
	Trust           string   // "" for that of the session that starts it
	TimeLimit       time.Duration
	OnParentEnd     string   // "finish", "stop" or "keep"
	Key             string   // "inherit" or "none"
	AllowTrust      []string // who may start it
}

// The placeholders of an agent's command, each an element of its own.
const (
	SessionPlaceholder   = "{session}"
	WorkspacePlaceholder = "{workspace}"
)

func defaultTeams() TeamsSettings {
	return TeamsSettings{Limits: teams.DefaultLimits(), Replies: "parent", Wake: []string{ClaudeInbox}}
}

func teamsOptions(s *Settings) []setting.Option {
	o, l := &s.Teams, &s.Teams.Limits
	const most = 10_000
	return []setting.Option{
		{Key: "teams.enabled", Help: "let sessions create others and write to them (attache teams), and carry messages in tool results", Value: setting.Bool(&o.Enabled)},
		{Key: "teams.max_children", Help: "how many sessions that one session created may run at once", Value: setting.Count(&l.MaxChildren, 0, most)},
		{Key: "teams.max_spawned", Help: "how many sessions one session may create in its life", Value: setting.Count(&l.MaxSpawned, 0, most)},
		{Key: "teams.max_depth", Help: "how deep sessions may be created by sessions; those of people are at 0", Value: setting.Count(&l.MaxDepth, 0, 100)},
		{Key: "teams.max_sessions", Help: "how many created sessions may run at once in a workspace", Value: setting.Count(&l.MaxSessions, 0, most)},
		{Key: "teams.spawn_every", Help: "the shortest time between two creations by one session", Value: setting.Duration(&l.SpawnEvery, 0)},
		{Key: "teams.replies", Help: "whether a sandboxed session may write to the direct one that created it: parent or none", Value: setting.Choice(&o.Replies, "parent", "none")},
		{Key: "teams.wake", Help: "how a session that makes no calls is told of messages", Value: setting.Words{To: &o.Wake, Known: []string{ClaudeInbox}}},
		{Key: "agents", Help: "the agents that sessions may create, by name", Value: setting.ByName[Agent]{To: &s.Agents, Check: teams.CheckName, Value: agentValue}},
	}
}

// agentValue is the value of one agent.
func agentValue(a *Agent) setting.Value {
	if a.Result == "" {
		*a = Agent{Result: "text", TimeLimit: 30 * time.Minute, OnParentEnd: "finish", Key: "none", AllowTrust: TrustLevels()}
	}
	return agentObject{setting.Object{Example: `{command: [claude, -p, --session-id, "{session}"], result: claude-json}`, Options: []setting.Option{
		{Key: "command", Help: "the command that starts the agent, which gets its first message by stdin; {session} and {workspace} stand for themselves", Value: setting.Words{To: &a.Command, Check: commandWord, Empty: "name the program"}},
		{Key: "resume", Help: "the command that goes on with a session that is over; without it a session cannot be resumed", Value: setting.Words{To: &a.Resume, Check: commandWord, Empty: "name the program, or leave the key out"}},
		{Key: "result", Help: "the form of what it writes to stdout", Value: setting.Choice(&a.Result, "claude-json", "codex-jsonl", "gemini-json", "text")},
		{Key: "trust", Help: "may lower the trust of the session that starts it, never raise it", Value: setting.Choice(&a.Trust, TrustLevels()...)},
		{Key: "time_limit", Help: "how long a run may take", Value: setting.Duration(&a.TimeLimit, time.Second)},
		{Key: "on_parent_end", Help: "what becomes of a run when the session that started it ends: finish (the run ends as it would, and is not resumed), stop, or keep", Value: setting.Choice(&a.OnParentEnd, "finish", "stop", "keep")},
		{Key: "key", Help: "inherit passes the session's API key on to the agent's servers", Value: setting.Choice(&a.Key, "none", "inherit")},
		{Key: "allow", Help: "who may start it", Value: setting.Object{Example: `{trust: [direct]}`, Options: []setting.Option{
			{Key: "trust", Help: "sessions of these levels of trust", Value: setting.Words{To: &a.AllowTrust, Known: TrustLevels(), Empty: "name a level"}},
		}}},
	}}}
}

// agentObject is an agent, which has a command.
type agentObject struct {
	setting.Object
}

func (v agentObject) Read(r *setting.Reader, key string, n ast.Node) {
	if has, ok := v.ReadKeys(r, key, n); ok && !has["command"] {
		r.AddProblem(n, "%s: has no \"command\": write it as %s", key, v.Example)
	}
}

func (v agentObject) Schema() map[string]any {
	s := v.Object.Schema()
	s["required"] = []string{"command"}
	return s
}

// commandWord accepts an element of an agent's command. A placeholder is a whole element, so
// that what is put in its place is one argument whatever it holds (T23).
func commandWord(s string) error {
	switch {
	case s == SessionPlaceholder, s == WorkspacePlaceholder:
		return nil
	case strings.ContainsRune(s, 0):
		return errors.New("has a NUL")
	}
	for _, name := range []string{SessionPlaceholder, WorkspacePlaceholder} {
		if strings.Contains(s, name) {
			return fmt.Errorf("%q: %s has to be an element of its own", s, name)
		}
	}
	if strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") && strings.Trim(s[1:len(s)-1], "abcdefghijklmnopqrstuvwxyz_") == "" {
		return fmt.Errorf("%s is no placeholder: there are %s and %s", s, SessionPlaceholder, WorkspacePlaceholder)
	}
	return nil
}

// The variables of the servers of an agent that a session started.
const (
	// SessionTokenVariable proves that a process is of the session it names.
	SessionTokenVariable = setting.Prefix + "_SESSION_TOKEN"
	// ParentVariable is the handle of the session that started it.
	ParentVariable = setting.Prefix + "_PARENT_SESSION_ID"
)
