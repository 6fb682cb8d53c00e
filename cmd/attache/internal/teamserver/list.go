package teamserver

import (
	"cmp"
	"context"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

type listResult struct {
	WorkspaceID  string    `json:"workspace_id"`
	You          string    `json:"you"`
	SessionCount int       `json:"session_count"`
	Sessions     []session `json:"sessions"`
	Cursor       string    `json:"cursor,omitempty"`
}

// A session is a session in the result of list_workspace_sessions.
type session struct {
	SessionID    string `json:"session_id"`
	Title        string `json:"title"`
	AgentName    string `json:"agent_name"`
	State        string `json:"state"`
	IsActive     bool   `json:"is_active"`
	IsYou        bool   `json:"is_you"`
	Reach        string `json:"reach"`
	TrustLevel   string `json:"trust_level"`
	ParentID     string `json:"parent_session_id"`
	CreatedBy    string `json:"created_by"`
	CreatedAt    string `json:"created_at"`
	LastActiveAt string `json:"last_active_at"`
}

func listSessions(ctx context.Context, c *call) (any, error) {
	in := struct {
		Active     bool   `json:"active_only"`
		Agent      string `json:"agent_name"`
		ChildrenOf string `json:"children_of"`
		Limit      int    `json:"limit"`
		Cursor     string `json:"cursor"`
	}{Active: true, Limit: store.MaxListed}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Limit < 1 || in.Limit > store.MaxListed {
		return nil, store.Refusal("limit must be 1-100")
	}
	f := store.Filter{Active: in.Active, Agent: strings.TrimSpace(in.Agent), ChildrenOf: strings.TrimSpace(in.ChildrenOf), Limit: in.Limit, Cursor: in.Cursor}
	if f.ChildrenOf == "me" {
		f.ChildrenOf = c.me.ID
	}
	found, cursor, err := c.db.List(ctx, c.me.Ref, f)
	if err != nil {
		return nil, err
	}
	out := listResult{WorkspaceID: c.me.Workspace, You: c.me.ID, SessionCount: len(found), Sessions: []session{}, Cursor: cursor}
	for _, s := range found {
		row := session{
			SessionID: s.ID, Title: s.Title, AgentName: cmp.Or(s.Agent, "default"), State: string(s.State), IsActive: s.Active(), IsYou: s.ID == c.me.ID,
			Reach: c.reach(s), TrustLevel: s.Trust, ParentID: s.Parent, CreatedBy: s.CreatedBy, CreatedAt: at(s.Created), LastActiveAt: at(s.LastActive),
		}
		if s.ID == c.me.Parent && s.Title == "" {
			row.Title = "parent"
		}
		out.Sessions = append(out.Sessions, row)
	}
	return out, nil
}

func endSession(ctx context.Context, c *call) (any, error) {
	var in struct {
		ID string `json:"session_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	id := strings.TrimSpace(in.ID)
	if !store.IsHandle(id) {
		return nil, store.ErrNotYours
	}
	ended, err := c.db.End(ctx, c.me.Ref, id)
	if err != nil {
		return nil, err
	}
	c.toolCall.Note(middleware.Allowed, "ended "+strings.Join(append([]string{id}, ended...), " "))
	return map[string]string{"session_id": id, "state": string(store.Ended)}, nil
}
