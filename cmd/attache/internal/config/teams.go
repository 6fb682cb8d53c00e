package config

import (
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// TeamsSettings configure whether sessions may create other sessions and write to them.
type TeamsSettings struct {
	Enabled bool
	Limits  teams.Limits
	Replies string // "parent" or "none"
	Wake    []Waker
}

// A Waker notifies an idle session of waiting messages. The first one that fits the session is
// used.
type Waker struct {
	// Command notifies sessions whose client's name matches the glob Client. A Waker without
	// a command uses the inbox that Claude Code gives its servers.
	Client  string
	Command []string
}

// claudeInbox stands for a Waker without a command in the configuration.
const claudeInbox = "claude-inbox"

// An Agent is the operator's template for sessions that another session creates.
type Agent struct {
	Command, Resume []string // Resume is nil if the agent cannot be resumed
	Result          string   // "claude-json", "codex-jsonl", "gemini-json" or "text"
	Trust           string   // "" for the trust of the session that starts it
	TimeLimit       time.Duration
	OnParentEnd     string   // "finish", "stop" or "keep"
	Key             string   // "inherit" or "none"
	AllowTrust      []string // the levels of trust that may start it
}

// The placeholders in commands. Each must be a whole element.
const (
	SessionPlaceholder   = "{session}"   // of an agent
	WorkspacePlaceholder = "{workspace}" // of an agent
	HostPlaceholder      = "{host_session}"
	NoticePlaceholder    = "{notice}"
)

func defaultTeams() TeamsSettings {
	return TeamsSettings{Limits: teams.DefaultLimits(), Replies: "parent", Wake: []Waker{{}}}
}

func (s *Settings) teamsOptions() []setting.Option {
	o, l := &s.Teams, &s.Teams.Limits
	const most = 10_000
	return []setting.Option{
		{Key: "teams.enabled", Help: "let sessions create other sessions and write to them (attache teams), and deliver messages in tool results", Value: setting.Bool(&o.Enabled)},
		{Key: "teams.max_children", Help: "how many sessions that one session created may run at once", Value: setting.Count(&l.MaxChildren, 0, most)},
		{Key: "teams.max_spawned", Help: "how many sessions one session may create in its life", Value: setting.Count(&l.MaxSpawned, 0, most)},
		{Key: "teams.max_depth", Help: "how deep sessions may create sessions; a session that a person started is at depth 0", Value: setting.Count(&l.MaxDepth, 0, 100)},
		{Key: "teams.max_sessions", Help: "how many created sessions may run at once in a workspace", Value: setting.Count(&l.MaxSessions, 0, most)},
		{Key: "teams.spawn_every", Help: "the shortest time between two creations by one session", Value: setting.Duration(&l.SpawnEvery, 0)},
		{Key: "teams.replies", Help: "whether a sandboxed session may write to the direct one that created it: parent or none", Value: setting.Choice(&o.Replies, "parent", "none")},
		{Key: "teams.wake", Help: "how an idle session is notified of messages: the inbox of Claude Code, or a command for clients whose name matches a glob", Value: setting.List[Waker]{To: &o.Wake, Item: wakerValue}},
		{Key: "agents", Help: "the agents that sessions may create, by name", Value: setting.ByName[Agent]{To: &s.Agents, Check: teams.CheckName, Value: agentValue}},
	}
}

func agentValue(a *Agent) setting.Value {
	if a.Result == "" {
		*a = Agent{Result: "text", TimeLimit: 30 * time.Minute, OnParentEnd: "finish", Key: "none", AllowTrust: TrustLevels()}
	}
	command := setting.Placeholders(SessionPlaceholder, WorkspacePlaceholder)
	return setting.Object{Required: []string{"command"}, Example: `{command: [claude, -p, --session-id, "{session}"], result: claude-json}`, Options: []setting.Option{
		{Key: "command", Help: "the command that starts the agent, which reads its first message from stdin; {session} and {workspace} are replaced by the session's id and the path of its workspace", Value: setting.Words{To: &a.Command, Check: command, Empty: "name the program"}},
		{Key: "resume", Help: "the command that resumes a session that has ended; without it a session cannot be resumed", Value: setting.Words{To: &a.Resume, Check: command, Empty: "name the program, or leave the key out"}},
		{Key: "result", Help: "the format of its output on stdout", Value: setting.Choice(&a.Result, "claude-json", "codex-jsonl", "gemini-json", "text")},
		{Key: "trust", Help: "may lower the trust of the session that starts it, never raise it", Value: setting.Choice(&a.Trust, TrustLevels()...)},
		{Key: "time_limit", Help: "how long a run may take", Value: setting.Duration(&a.TimeLimit, time.Second)},
		{Key: "on_parent_end", Help: "what happens to a run when the session that started it ends: finish (the run completes and is not resumed), stop or keep", Value: setting.Choice(&a.OnParentEnd, "finish", "stop", "keep")},
		{Key: "key", Help: "inherit passes the session's API key to the agent's servers", Value: setting.Choice(&a.Key, "none", "inherit")},
		{Key: "allow", Help: "who may start it: {trust: [direct]} is for sessions with a person; default: all", Value: setting.Object{Example: `{trust: [direct]}`, Options: []setting.Option{
			{Key: "trust", Help: "sessions with these levels of trust", Value: setting.Words{To: &a.AllowTrust, Known: TrustLevels(), Empty: "name a level"}},
		}}},
	}}
}

func wakerValue(w *Waker) setting.Structure {
	return setting.WordOr{Word: claudeInbox, IsWord: w.Command == nil, Object: setting.Object{Required: []string{"client", "command"}, Example: `{client: "codex*", command: [codex, queue, --thread, "{host_session}", --message, "{notice}"]}`, Options: []setting.Option{
		{Key: "client", Help: "a glob of the names that clients give in clientInfo", Value: setting.Text(&w.Client, setting.NotEmpty)},
		{Key: "command", Help: "the command that notifies the session; {notice} is replaced by a fixed sentence, {host_session} by the client's id of the session, {workspace} by the path of the workspace", Value: setting.Words{
			To: &w.Command, Check: setting.Placeholders(NoticePlaceholder, HostPlaceholder, WorkspacePlaceholder), Empty: "name the program",
		}},
	}}}
}

// The variables that the servers of an agent get.
const (
	// SessionTokenVariable holds the proof that a process belongs to its session. The name
	// avoids TOKEN, KEY and SECRET, because Gemini CLI does not pass such variables to servers.
	SessionTokenVariable = setting.Prefix + "_SESSION_PROOF"
	// ParentVariable holds the handle of the session that started the agent.
	ParentVariable = setting.Prefix + "_PARENT_SESSION_ID"
)
