package teamserver

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/cmd/attache/internal/agents"
	"github.com/attache-mcp/attache/middleware"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

type createResult struct {
	SessionID   string `json:"session_id"`
	Title       string `json:"title"`
	AgentName   string `json:"agent_name"`
	WorkspaceID string `json:"workspace_id"`
	TrustLevel  string `json:"trust_level"`
	ParentID    string `json:"parent_session_id"`
	Depth       int    `json:"depth"`
	State       string `json:"state"`
	Why         string `json:"why,omitempty"`
	CreatedAt   string `json:"created_at"`
	Children    int    `json:"children"`
	MaxChildren int    `json:"max_children"`
}

func createSession(ctx context.Context, c *call) (any, error) {
	var in struct {
		Title   string `json:"title"`
		Agent   string `json:"agent_name"`
		Message string `json:"initial_message"`
		Key     string `json:"key"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	in.Title, in.Agent = strings.TrimSpace(in.Title), strings.TrimSpace(in.Agent)
	if err := cmp.Or(store.CheckTitle(in.Title), store.CheckName(in.Agent)); err != nil {
		return nil, err
	}
	message, err := store.CheckMessage("Initial message", in.Message, store.MaxFirst)
	if err := cmp.Or(err, checkKey(in.Key)); err != nil {
		return nil, err
	}
	agent, err := c.Launcher.Agent(in.Agent, c.me.Trust)
	if err != nil {
		return nil, err
	}
	secrets := agents.NewSecrets(c.me.Tenant)
	limits := c.Launcher.Settings().Teams.Limits
	child, created, err := c.db.Create(ctx, c.me.Ref, store.Child{
		Title: in.Title, Agent: in.Agent, Trust: cmp.Or(agent.Trust, c.me.Trust), SpawnKey: in.Key, Message: message,
		Key: secrets.Key, Token: secrets.Token, AgentSession: agents.OwnSession(agent, secrets.Key),
	}, limits)
	if err != nil {
		return nil, err
	}
	out := createResult{
		SessionID: child.ID, Title: child.Title, AgentName: child.Agent, WorkspaceID: child.Workspace, TrustLevel: child.Trust,
		ParentID: child.Parent, Depth: child.Depth, State: "running", CreatedAt: at(child.Created), MaxChildren: limits.MaxChildren,
	}
	if created {
		if err := c.Launcher.Start(ctx, c.db, child, 1, secrets, c.toolCall.View()); err != nil {
			out.State, out.Why = string(store.Failed), err.Error()
		}
		c.toolCall.Note(middleware.Allowed, "created "+child.ID+" (agent "+child.Agent+", "+child.Trust+")")
	} else if !child.Active() {
		out.State = string(child.State)
	}
	if me, err := c.db.Session(ctx, c.me.Ref); err == nil {
		out.Children = me.Children
	}
	return out, nil
}

// checkKey checks the key that makes a retry safe.
func checkKey(key string) error {
	if utf8.RuneCountInString(key) > store.MaxKey {
		return store.Refusal("key too long (max 64 chars)")
	}
	return nil
}
