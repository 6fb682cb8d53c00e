package teams

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// A call of a teams tool that has the workspace registers the session, although another call of the same
// session, from another connection, came later and has none.
func TestRegisterWithOwnWorkspace(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "teams.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	opening := make(chan struct{})
	shared := Compile(Options{
		Open:      func() (*store.Store, error) { <-opening; return db, nil },
		Workspace: func(view *sessionstate.Context) string { return view.Workspace.Value },
	})
	defer shared.Close()
	session := func(workspace string) (*session, *sessionstate.Context) {
		view := &sessionstate.Context{Session: sessionstate.Fact{Value: "key", Source: sessionstate.RequestMeta}}
		view = view.WithWorkspace(sessionstate.Fact{Value: workspace, Source: sessionstate.RequestMeta})
		return shared.session(view, new(toolresult.Memory)), view
	}
	m, _ := session("")
	ready := m.ready // the attempt to register it without a workspace, which waits for the registry
	_, view := session("/w")
	call := &ToolCall{c: shared.Connect(ConnOptions{}), s: m, view: view}
	session("")
	close(opening)
	<-ready
	if _, me, err := call.Session(context.Background()); err != nil || me.Workspace != "/w" {
		t.Errorf("%v, %v", me, err)
	}
}
