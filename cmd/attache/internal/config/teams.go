package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

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

func teamsOptions(s *Settings) []option {
	o, l := &s.Teams, &s.Teams.Limits
	const most = 10_000
	return []option{
		{Key: "teams.enabled", Help: "let sessions create others and write to them (attache teams), and carry messages in tool results", value: boolean{&o.Enabled}},
		{Key: "teams.max_children", Help: "how many sessions that one session created may run at once", value: count{&l.MaxChildren, 0, most}},
		{Key: "teams.max_spawned", Help: "how many sessions one session may create in its life", value: count{&l.MaxSpawned, 0, most}},
		{Key: "teams.max_depth", Help: "how deep sessions may be created by sessions; those of people are at 0", value: count{&l.MaxDepth, 0, 100}},
		{Key: "teams.max_sessions", Help: "how many created sessions may run at once in a workspace", value: count{&l.MaxSessions, 0, most}},
		{Key: "teams.spawn_every", Help: "the shortest time between two creations by one session", value: duration{&l.SpawnEvery, 0}},
		{Key: "teams.replies", Help: "whether a sandboxed session may write to the direct one that created it: parent or none", value: choice{&o.Replies, []string{"parent", "none"}}},
		{Key: "teams.wake", Help: "how a session that makes no calls is told of messages", value: words{to: &o.Wake, known: []string{ClaudeInbox}}},
		{Key: "agents", Help: "the agents that sessions may create, by name", value: byName[Agent]{to: &s.Agents, check: teams.CheckName, value: agentValue}},
	}
}

// agentValue is the value of one agent.
func agentValue(a *Agent) value {
	if a.Result == "" {
		*a = Agent{Result: "text", TimeLimit: 30 * time.Minute, OnParentEnd: "finish", Key: "none", AllowTrust: TrustLevels()}
	}
	return agentObject{object{example: `{command: [claude, -p, --session-id, "{session}"], result: claude-json}`, options: []option{
		{Key: "command", Help: "the command that starts the agent, which gets its first message by stdin; {session} and {workspace} stand for themselves", value: words{to: &a.Command, check: commandWord, empty: "name the program"}},
		{Key: "resume", Help: "the command that goes on with a session that is over; without it a session cannot be resumed", value: words{to: &a.Resume, check: commandWord, empty: "name the program, or leave the key out"}},
		{Key: "result", Help: "the form of what it writes to stdout", value: choice{&a.Result, []string{"claude-json", "codex-jsonl", "gemini-json", "text"}}},
		{Key: "trust", Help: "may lower the trust of the session that starts it, never raise it", value: choice{&a.Trust, TrustLevels()}},
		{Key: "time_limit", Help: "how long a run may take", value: duration{&a.TimeLimit, time.Second}},
		{Key: "on_parent_end", Help: "what becomes of a run when the session that started it ends: finish (the run ends as it would, and is not resumed), stop, or keep", value: choice{&a.OnParentEnd, []string{"finish", "stop", "keep"}}},
		{Key: "key", Help: "inherit passes the session's API key on to the agent's servers", value: choice{&a.Key, []string{"none", "inherit"}}},
		{Key: "allow", Help: "who may start it", value: object{example: `{trust: [direct]}`, options: []option{
			{Key: "trust", Help: "sessions of these levels of trust", value: words{to: &a.AllowTrust, known: TrustLevels(), empty: "name a level"}},
		}}},
	}}, a}
}

// agentObject is an agent, which has a command.
type agentObject struct {
	object
	agent *Agent
}

func (v agentObject) read(r *reader, key string, n ast.Node) {
	if has, ok := v.readKeys(r, key, n); ok && !has["command"] {
		r.problem(n, "%s: has no \"command\": write it as %s", key, v.example)
	}
}

func (v agentObject) schema() map[string]any {
	s := v.object.schema()
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
	SessionTokenVariable = Prefix + "_SESSION_TOKEN"
	// ParentVariable is the handle of the session that started it.
	ParentVariable = Prefix + "_PARENT_SESSION_ID"
)
